#!/usr/bin/env bash
# Clients of other languages against `kube-informer serve`, over HTTP and over TLS with a token: see interop/README.md.
#
#   interop/run clients [python] [java] [javascript] [helm]
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target/interop"
target="$(cd "$target" && pwd)"
built="$target/interop"
helm_version=v4.3.1
# Limit for one program, in seconds.
limit=300

# Fails with a message unless the programs of a language are installed: name, programs.
require() {
    local name=$1 program
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null; then
            echo "SKIPPED: the $name clients, which need $program"
            return 1
        fi
    done
}

# Runs a program against a new server, over HTTP and over TLS with a token: its name and its command.
against_both() {
    over http "$@"
    over tls "$@"
}

# Runs a program with the KUBECONFIG of a new server: transport, name, command.
over() {
    local transport=$1 name=$2 directory ready server code=0
    shift 2
    directory=$(mktemp -d)
    local options=(--like-cluster --fault-endpoints --exit-with-parent --output json)
    options+=(--kubeconfig-out "$directory/config")
    if [ "$transport" = tls ]; then
        (umask 077 && head -c 24 /dev/urandom | base64 >"$directory/tokens")
        options+=(--tls-self-signed --token-file "$directory/tokens")
    fi
    echo "-- $name over $transport"
    # Its standard input is a pipe of this script: the server ends with the script.
    coproc SERVER { exec "$target/debug/kube-informer" serve "${options[@]}"; }
    server=$SERVER_PID
    if read -r ready <&"${SERVER[0]}"; then
        KUBECONFIG="$directory/config" timeout "$limit" "$@" </dev/null || code=$?
    else
        code=1
        echo "the server exited before it was ready" >&2
    fi
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -r "$directory"
    [ "$code" -eq 0 ] || failed+=("$name over $transport (exit code $code)")
}

python_clients() {
    require Python python3 || return 0
    if ! cmp -s interop/python/requirements.txt "$built/python/requirements.txt"; then
        python3 -m venv --clear "$built/python"
        "$built/python/bin/pip" install --quiet --requirement interop/python/requirements.txt
        cp interop/python/requirements.txt "$built/python/"
    fi
    export PYTHONDONTWRITEBYTECODE=1
    for program in official asynchronous kopf_operator; do
        against_both "python/$program.py" "$built/python/bin/python" "interop/python/$program.py"
    done
}

java_clients() {
    require Java java mvn || return 0
    mvn --quiet --batch-mode -Dstyle.color=never --file interop/java/pom.xml "-Doutput=$built/java" \
        compile dependency:copy-dependencies
    for program in Official Fabric8; do
        against_both "java/$program" java -cp "$built/java/classes:$built/java/dependency/*" "interop.$program"
    done
}

javascript_clients() {
    require JavaScript node npm || return 0
    mkdir -p "$built/javascript"
    cp interop/javascript/*.js "$built/javascript/"
    if ! cmp -s interop/javascript/package-lock.json "$built/javascript/package-lock.json"; then
        cp interop/javascript/package.json interop/javascript/package-lock.json "$built/javascript/"
        (cd "$built/javascript" && npm ci --silent) || { rm "$built/javascript/package-lock.json"; return 1; }
    fi
    against_both javascript/main.js node "$built/javascript/main.js"
}

helm_clients() {
    require helm go || return 0
    local program="$target/tools/bin/helm"
    if ! go version -m "$program" 2>/dev/null | grep -q "helm.sh/helm/v4[[:space:]]$helm_version[[:space:]]"; then
        GOBIN="$target/tools/bin" go install "helm.sh/helm/v4/cmd/helm@$helm_version"
    fi
    against_both helm/run interop/helm/run "$program"
}

[ $# -gt 0 ] || set -- python java javascript helm
for name in "$@"; do
    case $name in
    python | java | javascript | helm) ;;
    *)
        sed -n '4,4s/^# *//p' "$0" >&2
        exit 2
        ;;
    esac
done
cargo build --quiet -p kube-informer-cli
failed=()
for name in "$@"; do
    "${name}_clients"
done
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED %s\n' "${failed[@]}" >&2
    exit 1
fi
