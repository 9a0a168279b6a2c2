#!/bin/sh
# NBD as foreign clients see it: nbdinfo, nbdcopy both ways, qemu-img, qemu-io, fio's nbd engine; a server that is killed
# and started again; TLS over both kinds of socket.
#
# usage: nbd.sh NVLAB. What it needs is installed by tests/real/install.sh.
set -eu

nvlab=$1
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
socket=$folder/socket
uri="nbd+unix:///?socket=$socket"
export NVLAB_NO_PROGRESS=1

begin() { # design and options
    case " $* " in *" --nbd "*) ;; *) set -- --nbd "$socket" "$@" ;; esac
    "$nvlab" serve --time fast "$@" >"$folder/out" 2>"$folder/err" &
    server=$!
    # The socket may be one that a killed server left behind.
    for _ in $(seq 200); do grep -q '^nbd ' "$folder/err" && break; sleep 0.05; done
    grep -q '^nbd ' "$folder/err" || { cat "$folder/err"; echo "FAILED: no server"; exit 1; }
}

finish() {
    kill -TERM "$server"
    wait "$server" || { cat "$folder/err"; echo "FAILED: the server ended with an error"; exit 1; }
    server=
}

say() { echo "nbd.sh: $*"; }

drive='ssd-tlc,media.tlc.blocks=200,array.channels=1,ftl.spare=40%'
volatile='ssd-mlc-2010,media.mlc.blocks=512,ftl.spare=20%'
head -c 67108864 /dev/urandom >"$folder/image"

for design in "$drive" "$volatile"; do
    say "$design: nbdinfo, nbdcopy, qemu-img, qemu-io"
    begin "$design" --state "$folder/state"
    nbdinfo "$uri" >"$folder/info"
    grep -q 'can_multi_conn: true' "$folder/info"
    grep -q 'can_fua: true' "$folder/info"
    nbdinfo --list "$uri" >/dev/null
    nbdinfo --map "$uri" >/dev/null
    nbdcopy --connections=4 "$folder/image" "$uri"
    nbdcopy --flush "$uri" "$folder/back"
    cmp -n 67108864 "$folder/image" "$folder/back"
    qemu-img compare -f raw -F raw "$folder/back" "$uri" >/dev/null
    qemu-img convert -n -f raw -O raw "$folder/image" "$uri"
    qemu-io -f raw -c 'write -P 0xa5 1M 64k' -c 'flush' -c 'read -P 0xa5 1M 64k' -c 'write -z -u 2M 1M' \
        -c 'read -P 0 2M 1M' -c 'discard 4M 4M' -c 'write -f -P 0x11 9M 4k' -c 'read -P 0x11 9M 4k' "$uri" >/dev/null

    say "$design: killed and started again"
    qemu-io -f raw -c 'write -P 0x77 3M 128k' -c 'flush' "$uri" >/dev/null
    kill -KILL "$server"; wait "$server" 2>/dev/null || true; server=
    begin "$design" --state "$folder/state"
    grep -q 'server was killed' "$folder/err"
    qemu-io -f raw -c 'read -P 0x77 3M 128k' -c 'read -P 0x11 9M 4k' "$uri" >/dev/null
    finish
    begin "$design" --state "$folder/state"
    grep -q 'as it was left' "$folder/err"
    qemu-io -f raw -c 'read -P 0x77 3M 128k' "$uri" >/dev/null
    finish
    rm -rf "$folder/state"
done

say "fio, with verification"
begin "$drive"
if fio --enghelp=nbd >/dev/null 2>&1; then
    fio --name=verify --ioengine=nbd --uri="$uri" --rw=randwrite --bs=4k --size=64m --iodepth=16 \
        --verify=crc32c --verify_state_save=0 --do_verify=1 --minimal >/dev/null
else
    say "this fio has no nbd engine: left out"
fi
finish
grep -q 'Write amp' "$folder/err" || { cat "$folder/err"; echo "FAILED: no report"; exit 1; }

say "TLS: nbdinfo and nbdcopy with certificates, and without"
mkdir "$folder/pki" "$folder/client" "$folder/stranger"
authority() { # folder
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=nvlab test" \
        -keyout "$1/ca-key.pem" -out "$1/ca-cert.pem" 2>/dev/null
}
certificate() { # folder, authority, name
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$3" -keyout "$1/$3-key.pem" \
        -out "$folder/request" 2>/dev/null
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$folder/names"
    openssl x509 -req -days 2 -in "$folder/request" -CA "$2/ca-cert.pem" -CAkey "$2/ca-key.pem" -CAcreateserial \
        -extfile "$folder/names" -out "$1/$3-cert.pem" 2>/dev/null
}
authority "$folder/pki"
certificate "$folder/pki" "$folder/pki" server
cp "$folder/pki/ca-cert.pem" "$folder/client"
certificate "$folder/client" "$folder/pki" client
authority "$folder/stranger"
certificate "$folder/stranger" "$folder/stranger" client
cp "$folder/pki/ca-cert.pem" "$folder/stranger"
for address in "$socket" 127.0.0.1:10919; do
    begin "$drive" --tls require --tls-certificates "$folder/pki" --tls-verify-peer --nbd "$address"
    case $address in
    /*) plain="nbd+unix:///?socket=$socket"; secure="nbds+unix://localhost/?socket=$socket&tls-certificates=" ;;
    *) plain="nbd://$address"; secure="nbds://localhost:${address#*:}/?tls-certificates=" ;;
    esac
    nbdinfo "$secure$folder/client" | grep -q 'protocol: newstyle-fixed with TLS'
    nbdcopy --connections=2 "$folder/image" "$secure$folder/client"
    nbdcopy "$secure$folder/client" "$folder/back"
    cmp -n 67108864 "$folder/image" "$folder/back"
    for wrong in "$plain" "$secure$folder/stranger"; do
        if nbdinfo --size "$wrong" >/dev/null 2>&1; then echo "FAILED: $wrong was let in"; exit 1; fi
    done
    finish
done

say "ok"
