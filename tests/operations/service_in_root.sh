#!/bin/sh
# What the packages' unit starts, with two trainers of another user, as systemd would start it: as the
# unit's user, in the unit's folders. A bare root has no systemd of its own.
#
# service_in_root.sh [COMMAND]: in the midst of reading, run a command, such as one that upgrades the packages.
set -eu
command=${1:-true}
cd "$(mktemp -d)"
chmod 755 .
unit=/lib/systemd/system/tundish@.service
socket=/run/tundish/clicks/server
id -u trainer >/dev/null 2>&1 || {
    useradd --groups tundish trainer
    useradd stranger
}
seq 1000 >rows.txt
printf 'streams: {train: {dataset: [text_line: {filenames: %s}, batch: 10], distribute: {replicas: 2}}}\n' \
    "$PWD/rows.txt" >/etc/tundish/clicks.yaml
for folder in /run/tundish/clicks:750 /var/lib/tundish/clicks:700 /var/cache/tundish:700; do
    install -d -o tundish -g tundish -m "${folder#*:}" "${folder%:*}"
done

as() {
    user=$1
    shift
    setpriv --reuid "$user" --regid "$user" --init-groups \
        env TUNDISH_SERVER=$socket TUNDISH_SERVER_UID="$(id -u tundish)" TUNDISH_STREAM=train "$@"
}

serve() {
    # shellcheck disable=SC2046
    as tundish sh -c 'umask 077; exec "$@"' sh $(sed -n 's/^ExecStart=//p' $unit | sed 's/%i/clicks/g')
}

refused() {
    grep -q "$1" refused || { cat refused; exit 1; }
}

# A file that the service's user may not read is a sentence.
chmod 700 /etc/tundish
if serve 2>refused; then exit 1; fi
refused '/etc/tundish/clicks.yaml: Permission denied'
chmod 755 /etc/tundish

serve 2>log &
server=$!
until grep -q ' ready: ' log; do
    kill -0 $server || { cat log; exit 1; }
    sleep 0.05
done
cat >count.py <<'END'
import os, sys, time
import tundish
count = 0
for step, batch in enumerate(tundish.open()):
    count += len(batch["value"])
    if step == 20:
        print("half", file=sys.stderr, flush=True)
    while step == 20 and not os.path.exists("go"):
        time.sleep(0.05)
print(count)
END
as trainer TUNDISH_REPLICA=0 /usr/bin/python3 count.py >first 2>first.err &
first=$!
as trainer TUNDISH_REPLICA=1 /usr/bin/python3 count.py >second 2>second.err &
second=$!
for trainer in first second; do
    until grep -q half $trainer.err; do
        kill -0 $first $second || { cat ./*.err; exit 1; }
        sleep 0.05
    done
done
as trainer tundish status | grep -q train
# Nothing of it stops the server or its trainers.
sh -euc "$command"
kill -0 $server $first $second
touch go
wait $first $second || { cat ./*.err; exit 1; }
[ $(($(cat first) + $(cat second))) = 1000 ]
# Another server at the same place is refused, and so is a user who is not in the group.
if serve 2>refused; then exit 1; fi
refused 'another server is running'
if as stranger TUNDISH_REPLICA=0 /usr/bin/python3 count.py 2>refused; then exit 1; fi
refused 'Permission denied'
as tundish tundish stop
wait $server
grep -q 'stop: stopped' log
rm -r "$PWD" /etc/tundish/clicks.yaml /run/tundish/clicks
