oc --context=ci@lab --namespace=ci config view --minify -o 'jsonpath={.clusters[0].cluster.insecure-skip-tls-verify}'
