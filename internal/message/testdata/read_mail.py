"""Reads mails from the files named on standard input, one a line, and prints one JSON object a line: headers, parts, defects."""

import base64
import email
import email.policy
import json
import sys


def addresses(message, name):
    return [[a.display_name, a.addr_spec] for header in message.get_all(name, []) for a in header.addresses]


def describe(part):
    filename = part.get_filename()
    if part.get_content_maintype() == "message":
        payload = b"".join(bytes(p) for p in part.get_payload())
    else:
        payload = part.get_payload(decode=True) or b""
    return {
        "type": part.get_content_type(),
        "disposition": part.get_content_disposition() or "",
        "filename": filename or "",
        "cid": part.get("content-id", ""),
        "encoding": part.get("content-transfer-encoding", ""),
        "payload": base64.b64encode(payload).decode(),
    }


def walk(part):
    """Like Message.walk, but does not look into attached messages."""
    yield part
    if part.is_multipart() and part.get_content_maintype() != "message":
        for child in part.iter_parts():
            yield from walk(child)


def read(path):
    with open(path, "rb") as f:
        message = email.message_from_binary_file(f, policy=email.policy.default)
    parts = list(walk(message))
    defects = [repr(d) for p in parts for d in p.defects]
    header_defects = [f"{name}: {d!r}" for p in parts for name, value in p.items() for d in getattr(value, "defects", [])]
    return {
        "subject": message.get("subject", ""),
        "from": addresses(message, "from"),
        "to": addresses(message, "to"),
        "cc": addresses(message, "cc"),
        "messageId": message.get("message-id", ""),
        "date": message["date"].datetime.isoformat() if message["date"] else "",
        "headers": [[name, str(value)] for name, value in message.items()],
        "parts": [describe(p) for p in parts if not p.is_multipart() or p.get_content_maintype() == "message"],
        "structure": [p.get_content_type() for p in parts],
        "defects": defects,
        "headerDefects": header_defects,
    }


for line in sys.stdin:
    print(json.dumps(read(line.rstrip("\n"))), flush=True)
