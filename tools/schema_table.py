#!/usr/bin/env python3
"""Prints the table of types that the server compiles in, from OpenAPI v3 documents. Called by tools/regenerate.

    tools/schema_table.py DIRECTORY_OF_GROUP_VERSION_JSON GO_FILE_OF_OPENAPI_DEFINITIONS

The Go file has the allowed values of fields (tools/enums.py). One line per type, indented lines for its fields. The notation is explained at the top of the output and parsed by
crates/types/src/table.rs. tools/zero_values.py adds the marks for zero values.
"""
import json, pathlib, sys

import enums

HEAD = """# Types of the built-in kinds at Kubernetes 1.36: field names, JSON types, merge rules. Facts only, no descriptions.
# Made by tools/regenerate; read by src/table.rs.
#
# TYPE [atomic] [kind=GROUP/VERSION/KIND]
#  FIELD SHAPE[!][?|+|=]     ! = required
# then how JSON treats a zero value:  ? absent and zero differ  = likewise, and absent is null  + it is always written
# (nothing) it is omitted
#
# SHAPE  s string  s(A|B) one of  i int32  l int64  n number  b bool  y base64 bytes  t time  u time with microseconds
#        q quantity  x int or string  * anything  @TYPE that type  ?TYPE that type if it is an object, else anything
#        {SHAPE} map  [SHAPE] list
# after } or ]:  a atomic  s set  m(k1,k2) keyed by those fields;  then ~STRATEGY[:KEY] for strategic merge patch
# after @TYPE:   ~STRATEGY likewise
"""
PREFIXES = [("io.k8s.api.", ""), ("io.k8s.apimachinery.pkg.apis.", ""), ("io.k8s.apimachinery.pkg.", ""),
            ("io.k8s.apiextensions-apiserver.pkg.apis.", ""), ("io.k8s.kube-aggregator.pkg.apis.", "")]
SPECIAL = {"meta.v1.Time": "t", "meta.v1.MicroTime": "u", "api.resource.Quantity": "q", "util.intstr.IntOrString": "x",
           "meta.v1.FieldsV1": "*", "meta.v1.Patch": "*", "runtime.RawExtension": "*", "apiextensions.v1.JSON": "*",
           "apiextensions.v1.JSONSchemaPropsOrArray": "?apiextensions.v1.JSONSchemaProps",
           "apiextensions.v1.JSONSchemaPropsOrBool": "?apiextensions.v1.JSONSchemaProps",
           "apiextensions.v1.JSONSchemaPropsOrStringArray": "*"}
SCALARS = {("integer", "int32"): "i", ("integer", "int64"): "l", ("integer", None): "l", ("number", "double"): "n",
           ("boolean", None): "b", ("string", "byte"): "y", ("string", "date-time"): "t"}


def short(name):
    for prefix, replacement in PREFIXES:
        if name.startswith(prefix):
            return replacement + name[len(prefix):]
    return name


def reference(schema):
    ref = schema.get("$ref") or next((s["$ref"] for s in schema.get("allOf", ()) if "$ref" in s), None)
    return ref and short(ref.rsplit("/", 1)[1])


def merge_rule(schema):
    strategy, key = schema.get("x-kubernetes-patch-strategy"), schema.get("x-kubernetes-patch-merge-key")
    return "~" + strategy + (":" + key if key else "") if strategy else ""


def list_rule(schema):
    kind = schema.get("x-kubernetes-list-type", schema.get("x-kubernetes-map-type"))
    keys = ",".join(schema.get("x-kubernetes-list-map-keys", ()))
    return {"atomic": "a", "set": "s", "map": "m(%s)" % keys}.get(kind, "")


def shape(schema):
    ref = reference(schema)
    if ref:
        return SPECIAL.get(ref, "@" + ref) + merge_rule(schema)
    if schema.get("type") == "array":
        return "[%s]%s%s" % (shape(schema["items"]), list_rule(schema), merge_rule(schema))
    if isinstance(schema.get("additionalProperties"), dict):
        return "{%s}%s%s" % (shape(schema["additionalProperties"]), list_rule(schema), merge_rule(schema))
    if schema.get("type") == "string" and "format" not in schema:
        return "s(%s)" % "|".join(schema["enum"]) if "enum" in schema else "s"
    return SCALARS.get((schema.get("type"), schema.get("format")), "*")


def innermost(schema):
    """The schema of the values in lists and maps of any depth."""
    inner = schema.get("items", schema.get("additionalProperties"))
    return innermost(inner) if isinstance(inner, dict) else schema


def main():
    types = {}
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*_*.json")):
        types.update(json.loads(path.read_text())["components"]["schemas"])
    allowed = enums.read(pathlib.Path(sys.argv[2]))
    print(HEAD, end="")
    for name, schema in sorted((short(n), s) for n, s in types.items()):
        if name in SPECIAL or name.endswith("List") and "items" in schema.get("properties", {}):
            continue
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        words = [name] + (["atomic"] if schema.get("x-kubernetes-map-type") == "atomic" else [])
        words += ["kind=%(group)s/%(version)s/%(kind)s" % kinds[0]] if len(kinds) == 1 else []
        print(*words)
        for field, inner in sorted(schema.get("properties", {}).items()):
            if (name, field) in allowed:
                innermost(inner)["enum"] = allowed[name, field]
            print(" %s %s%s" % (field, shape(inner), "!" if field in schema.get("required", ()) else ""))


if __name__ == "__main__":
    main()
