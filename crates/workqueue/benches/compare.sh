#!/usr/bin/env bash
# Runs the measurements of queue.rs and the same ones on client-go's queue, and prints both with their ratios
# (client-go : ours, above 1 is in our favour). Needs Go; the first run fetches client-go.
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
cargo bench --quiet -p kube-workqueue --bench queue >"$out/ours"
(cd interop/workqueue-go && go run .) >"$out/theirs"
join -t $'\t' <(sort "$out/ours") <(sort "$out/theirs") | awk -F '\t' '
    NF == 5 { printf "%-26s clock %8.1f ns, client-go %8.1f ns: %5.2f   processors %8.1f ns, client-go %8.1f ns: %5.2f\n",
              $1, $2, $4, $4 / $2, $3, $5, $5 / $3 }
    NF == 3 { printf "%-26s %8.1f bytes, client-go %8.1f bytes: %5.2f\n", $1, $2, $3, $3 / $2 }'
