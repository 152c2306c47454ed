{{/* What both nginx have in common: short patience, TLS with authenticated encryption only, files in /tmp. */}}
{{- define "aggregator.nginxManners" -}}
server_tokens off;
client_header_timeout 10s;  # the TLS handshake included
client_body_timeout 10s;    # between two reads
send_timeout 10s;
keepalive_timeout 30s;      # nodes ask every three seconds
keepalive_requests 100000;
lingering_time 10s;
lingering_timeout 2s;
reset_timedout_connection on;
client_header_buffer_size 1k;
large_client_header_buffers 4 4k;
client_body_temp_path /tmp/body;
proxy_temp_path /tmp/proxy;
fastcgi_temp_path /tmp/fastcgi;
uwsgi_temp_path /tmp/uwsgi;
scgi_temp_path /tmp/scgi;
ssl_protocols TLSv1.2 TLSv1.3;
ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256;
ssl_prefer_server_ciphers off;
ssl_session_cache shared:tls:1m;
ssl_session_tickets off;
{{- end }}

{{/* The way to the SuperLink, on loopback. A request reaches it whole or not at all: bodies wait here until they are
     complete, and at most eight are there at once, since a body costs it several times its size. */}}
{{- define "aggregator.nginxSuperlink" -}}
upstream superlink {
  server 127.0.0.1:8000 max_fails=0;
  keepalive 64;
}
upstream superlink_bodies {
  server 127.0.0.1:8000 max_fails=0 max_conns=8;
  keepalive 8;
}
proxy_http_version 1.1;
proxy_request_buffering on;
proxy_set_header Connection "";
proxy_set_header Host localhost;
proxy_read_timeout 300s;
proxy_ssl_protocols TLSv1.3;
proxy_ssl_trusted_certificate /run/loopback/ca.crt;
proxy_ssl_verify on;
proxy_ssl_name localhost;
proxy_ssl_session_reuse on;
{{- end }}

{{/* A node's public key as its requests carry it: OpenSSH's text → SubjectPublicKeyInfo of P-384 → PEM → base64. A key of
     another kind has no such form, so no request is ever taken for its owner's. */}}
{{- define "aggregator.nodeKeyHeader" -}}
{{- $blob := index (splitList " " .) 1 | b64dec }}
{{- if eq (len $blob) 136 }}
{{- $info := print (b64dec "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgA=") (substr 39 136 $blob) | b64enc }}
{{- printf "-----BEGIN PUBLIC KEY-----\n%s\n%s\n%s\n-----END PUBLIC KEY-----\n" (substr 0 64 $info) (substr 64 128 $info) (substr 128 160 $info) | b64enc }}
{{- end }}
{{- end }}
