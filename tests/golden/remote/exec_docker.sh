docker exec -i tipcflow-a /bin/sh -c '/bin/sh -c "$1"
code=$?
printf '"'"'\ntipcflow: the command ended with %s\n'"'"' "$code" >&2
exit "$code"
' tipcflow 'echo '"'"'a b'"'"' "$HOME"'
