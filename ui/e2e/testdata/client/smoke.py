"""Uses a client that openapi-generator made of the OpenAPI document: submit, list, get, pause, resume, cancel."""
import datetime
import os

import postroom_client as postroom
from postroom_client.exceptions import ApiException

settings = postroom.Configuration(host=os.environ["URL"])
settings.access_token = os.environ["TOKEN"]
client = postroom.ApiClient(settings)
later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
sent = postroom.SubmitApi(client).submit(submit_request=postroom.SubmitRequest(
    to=[postroom.Address(address="ann@example.net")], subject="Hello", text="Hello Ann", send_at=later))
outbox = postroom.OutboxApi(client)
assert sent.queue_id in [m.queue_id for m in outbox.list_outbox(search="Hello").messages], "it is not listed"
assert outbox.get_message(sent.queue_id).subject == "Hello", "another subject"
queues = postroom.QueuesApi(client)
for paused in (True, False):
    queues.put_queue("bulk", queue_patch=postroom.QueuePatch(paused=paused))
    assert queues.get_queue("bulk").paused == paused, "not paused or resumed"
assert outbox.cancel_message(sent.queue_id).deleted, "not cancelled"
try:
    outbox.get_message(sent.queue_id)
    raise SystemExit("a cancelled message is still there")
except ApiException as e:
    assert e.status == 404, e
print("ok")
