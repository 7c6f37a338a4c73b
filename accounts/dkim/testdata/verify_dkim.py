"""Verifies DKIM signatures with dkimpy. Each line of standard input is {"file": mail, "records": {name: TXT record}}; each line of output
lists what became of each signature of that mail: "" if it holds, else why not."""

import json
import sys

import dkim


def verify(file, records):
    with open(file, "rb") as f:
        mail = f.read()

    def txt(name, timeout=5):
        return records.get(name.decode().rstrip("."), "").encode() or None

    results = []
    for index in range(mail.lower().split(b"\r\n\r\n")[0].count(b"dkim-signature:")):
        try:
            holds = dkim.DKIM(mail, minkey=1024).verify(idx=index, dnsfunc=txt)
            results.append("" if holds else "the signature does not match")
        except dkim.DKIMException as e:
            results.append(repr(e))
    return results


for line in sys.stdin:
    print(json.dumps(verify(**json.loads(line))), flush=True)
