#!/usr/bin/env python3
"""Marks in a table of types how JSON treats the zero value of each field. Called by tools/regenerate.

    tools/zero_values.py TYPES_TXT API APIMACHINERY APIEXTENSIONS AGGREGATOR

The directories are those of the Go modules k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and
k8s.io/kube-aggregator, of the same release as the table. Only facts are taken from them: whether a field is a pointer, and
whether JSON omits its zero value. The marks are explained at the top of the table.
"""

import pathlib
import re
import sys

from protobuf_numbers import Packages

# Shapes that are structs in Go: `omitempty` does not leave those out.
STRUCTS = "@tuqx"


def fields(types, package, name):
    """json name -> (Go type, options)"""
    result = {}
    for go_type, json_name, options, _ in types[package].get(name, []):
        if json_name == "" and "inline" in options:
            inner_package, _, inner = go_type.lstrip("*").rpartition(".")
            if (inner_package or package) in types:
                result.update(fields(types, inner_package or package, inner))
        elif json_name != "-":
            result[json_name] = (go_type, options)
    return result


def mark(shape, go_type, options):
    if go_type.startswith("*"):
        return "?" if "omitempty" in options or "omitzero" in options else "="
    is_struct = shape[0] in STRUCTS or go_type in ("runtime.RawExtension", "JSON")
    left_out = "omitzero" in options or "omitempty" in options and not is_struct
    return "" if left_out else "+"


def main():
    table, *modules = map(pathlib.Path, sys.argv[1:])
    packages, lines, known = Packages(*modules), [], {}
    for line in table.read_text().splitlines():
        if line and not line.startswith(("#", " ")):
            group, version, name = line.split(" ")[0].split(".")
            types = packages.types(group, version)
            known = fields(types, f"{group}.{version}", name)
        elif line.startswith(" "):
            field, shape = line[1:].split(" ", 1)
            shape = re.sub(r"[?+=]$", "", shape)
            if field in known:
                shape += mark(shape, *known[field])
            elif field not in ("apiVersion", "kind"):
                print(f"no Go field for {group}.{version}.{name}.{field}", file=sys.stderr)
            line = f" {field} {shape}"
        lines.append(line)
    table.write_text("\n".join(lines) + "\n")


main()
