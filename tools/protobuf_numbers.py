#!/usr/bin/env python3
"""Prints the protobuf numbers of the fields in a table of types. Called by tools/regenerate.

    tools/protobuf_numbers.py TYPES_TXT API APIMACHINERY APIEXTENSIONS AGGREGATOR

The directories are those of the Go modules k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and
k8s.io/kube-aggregator, of the same release as the table of types. Only facts are taken from them: the JSON name of a field,
and its number.
"""

import pathlib
import re
import sys

HEADER = """\
# Protobuf numbers of the fields of the built-in kinds at Kubernetes 1.36. Facts only.
# Made by tools/regenerate; read by src/protobuf/messages.rs.
#
# TYPE                       as in src/types.txt
#  FIELD NUMBER[.NUMBER...]  several numbers: JSON omits the messages around the field
#  FIELD NUMBER UNION        a schema, or a list of schemas (list), true or false (bool), names of fields (strings)
#  FIELD NUMBER wrapped      a list in a message of its own
# The meaning of zero values is in the table of types."""

# Go types that are a schema or something else.
UNIONS = {"JSONSchemaPropsOrArray": "list", "JSONSchemaPropsOrBool": "bool", "JSONSchemaPropsOrStringArray": "strings"}

FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\S.*?)\s+`(.*)`\s*(?://.*)?$")


def structs(directory):
    """name -> [(Go type, json name or '' if inline, options, number)]"""
    found = {}
    for file in sorted(directory.glob("*types*.go")):
        current = None
        for line in file.read_text().splitlines():
            start = re.match(r"^type (\w+) struct ?\{(\}?)", line)
            if start:
                current = found.setdefault(start[1], [])
                if start[2]:
                    current = None
            elif line == "}":
                current = None
            elif current is not None and (match := FIELD.match(line)):
                go_type, tags = match[2] or match[1], match[3]
                json_tag = re.search(r'json:"([^"]*)"', tags)
                number = re.search(r'protobuf:"\w+,(\d+),', tags)
                if not json_tag:
                    continue
                name, _, options = json_tag[1].partition(",")
                current.append((go_type, name, options, int(number[1]) if number else None))
    return found


class Packages:
    """The structs of the Go packages of group versions. Each package is read once."""

    def __init__(self, api, machinery, extensions, aggregator):
        self.api, self.machinery, self.extensions, self.aggregator = api, machinery, extensions, aggregator
        self.read = {}

    def structs(self, group, version):
        directory = {
            "meta": self.machinery / "pkg/apis/meta/v1",
            "apiextensions": self.extensions / "pkg/apis/apiextensions" / version,
            "apiregistration": self.aggregator / "pkg/apis/apiregistration" / version,
        }.get(group, self.api / group / version)
        if directory not in self.read:
            self.read[directory] = structs(directory) if directory.is_dir() else {}
        return self.read[directory]

    def types(self, group, version):
        """package -> structs, with the names by which a package imports others"""
        imported = {"metav1": ("meta", "v1"), "v1": ("core", "v1"), "corev1": ("core", "v1")}
        own = {f"{group}.{version}": self.structs(group, version)}
        return own | {alias: self.structs(*other) for alias, other in imported.items()}


def fields(types, package, name):
    """json name -> (numbers, union)"""
    result = {}
    for go_type, json_name, options, number in types[package].get(name, []):
        if json_name == "" and "inline" in options:
            if number is None:
                continue  # apiVersion and kind travel in the envelope
            inner_package, _, inner = go_type.lstrip("*").rpartition(".")
            for inner_name, (numbers, union) in fields(types, inner_package or package, inner).items():
                result[inner_name] = ([number, *numbers], union)
            continue
        if number is None or json_name == "-":
            continue
        union = next((word for name, word in UNIONS.items() if go_type.endswith(name)), "")
        if go_type == "JSONSchemaDependencies":
            union = "strings"
        if go_type == "Verbs":
            union = "wrapped"
        result[json_name] = ([number], union)
    return result


def main():
    table, *modules = map(pathlib.Path, sys.argv[1:])
    print(HEADER)
    packages, known = Packages(*modules), {}
    for line in table.read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        if not line.startswith(" "):
            full = line.split(" ")[0]
            group, version, name = full.split(".")
            key, types = f"{group}.{version}", packages.types(group, version)
            known = fields(types, key, name)
            # A type without fields is a message all the same.
            if known or types[key].get(name) == []:
                print(full)
        elif known:
            field = line.split(" ")[1]
            if field in ("apiVersion", "kind") and field not in known:
                continue
            if field not in known:
                print(f"{full}.{field} has no number", file=sys.stderr)
                continue
            numbers, union = known[field]
            print(f" {field} {'.'.join(map(str, numbers))} {union}".rstrip())


if __name__ == "__main__":
    main()
