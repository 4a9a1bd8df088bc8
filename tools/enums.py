"""Allowed values of string fields. The published OpenAPI documents leave them out; a running kube-apiserver serves them.

They are read from the Go source of the same definitions, in the module k8s.io/kubernetes.
"""
import re

FUNCTION = re.compile(r"^func schema_(\w+)\(ref")
PROPERTY = re.compile(r'^\t\t\t\t\t"([^"]+)": \{$')
VALUES = re.compile(r"^\t+Enum:\s+\[\]interface\{\}\{(.*)\},$")
# Prefix of a function name, and the prefix of the type as the table of types writes it.
PREFIXES = [
    ("k8sio_api_", ""),
    ("pkg_apis_meta_", "meta_"),
    ("pkg_apis_apiextensions_", "apiextensions_"),
]


def type_name(function):
    for prefix, replacement in PREFIXES:
        if function.startswith(prefix):
            group, version, name = (replacement + function[len(prefix):]).split("_", 2)
            return f"{group}.{version}.{name}"
    return None


def read(path):
    """(type, field) -> sorted values"""
    found, name, field = {}, None, None
    for line in path.read_text().splitlines():
        if match := FUNCTION.match(line):
            name = type_name(match[1])
        elif match := PROPERTY.match(line):
            field = match[1]
        elif name and (match := VALUES.match(line)):
            found[name, field] = sorted(re.findall(r'"([^"]*)"', match[1]))
    return found
