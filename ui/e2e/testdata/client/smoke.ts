// Uses a client that openapi-typescript made of the OpenAPI document: submit, list, get, pause, resume, cancel.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const baseUrl = process.env.URL!, token = process.env.TOKEN!;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function must<T>(answer: { data?: T; error?: unknown }): T {
  if (!answer.data) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const later = new Date(Date.now() + 3600_000).toISOString();
const sent = must(await client.POST("/v1/submit", {
  body: { to: [{ address: "ann@example.net" }], subject: "Hello", text: "Hello Ann", sendAt: later },
}));
const queueId = sent.queueId!;
const list = must(await client.GET("/v1/outbox", { params: { query: { search: "Hello" } } }));
if (!list.messages.some((m) => m.queueId === queueId)) throw new Error(`${queueId} is not listed`);
const message = must(await client.GET("/v1/outbox/{queueId}", { params: { path: { queueId } } }));
if (message.subject !== "Hello") throw new Error(`the subject is ${message.subject}`);
for (const paused of [true, false]) {
  must(await client.PUT("/v1/settings/queue/{queue}", { params: { path: { queue: "bulk" } }, body: { paused } }));
  const queue = must(await client.GET("/v1/settings/queue/{queue}", { params: { path: { queue: "bulk" } } }));
  if (queue.paused !== paused) throw new Error(`paused is ${queue.paused}, want ${paused}`);
}
const gone = must(await client.DELETE("/v1/outbox/{queueId}", { params: { path: { queueId } } }));
if (!gone.deleted) throw new Error("the message was not cancelled");
const missing = await client.GET("/v1/outbox/{queueId}", { params: { path: { queueId } } });
if (missing.error?.statusCode !== 404) throw new Error(`a cancelled message: ${JSON.stringify(missing)}`);
console.log("ok");
