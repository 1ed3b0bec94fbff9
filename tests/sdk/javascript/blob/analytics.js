// Storage analytics: requests in logs, sums in metrics.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { tableClient } from "../target.js";
import {
  account, bytesOf, collect, freshContainer, freshName, namesOf, put, scenario, serviceClient, textOf,
} from "./target.js";

const service = serviceClient();
const retention = { enabled: true, days: 7 };
const off = { version: "1.0", enabled: false, retentionPolicy: { enabled: false } };
const quiet = {
  version: "1.0", read: false, write: false, deleteProperty: false, retentionPolicy: { enabled: false },
};

/** Asks until there is an answer. A minute's metrics are written when the minute is over. */
async function eventually(what, ask) {
  for (let attempt = 0; attempt < 900; attempt++) {
    const answer = await ask();
    if (answer) return answer;
    await sleep(100);
  }
  assert.fail(`${what}: nothing within ninety seconds`);
}

/** The lines of all logs, as fields. */
async function logged() {
  const logs = service.getContainerClient("$logs");
  const texts = [];
  for (const name of namesOf(await collect(logs.listBlobsFlat({ prefix: "blob/" })))) {
    texts.push((await bytesOf(logs.getBlobClient(name).download())).toString());
  }
  const lines = texts.join("").split("\n").filter(Boolean);
  return lines.map((line) => `${line};`.match(/("[^"]*"|[^;]*);/g).map((field) => field.slice(0, -1)));
}

scenario("analytics-logs", "requests are lines of blobs in $logs", async (t) => {
  t.after(() => service.setProperties({ blobAnalyticsLogging: quiet }));
  await service.setProperties({
    blobAnalyticsLogging: { version: "1.0", read: true, write: true, deleteProperty: true, retentionPolicy: retention },
  });
  const container = await freshContainer(t);
  const blob = await put(container, freshName("logged"), "12345");
  await textOf(blob);
  await blob.delete();
  await service.setProperties({ blobAnalyticsLogging: quiet });
  const key = `"/${account}/${container.containerName}/${blob.name}"`;
  const lines = await eventually("the lines of a blob", async () => {
    const mine = (await logged()).filter((fields) => fields[12] === key);
    return mine.length >= 3 && mine;
  });
  assert.deepEqual(lines.map((fields) => fields.slice(2, 5).join(" ")),
    ["PutBlob Success 201", "GetBlob Success 200", "DeleteBlob Success 202"]);
  for (const fields of lines) {
    assert.equal(fields.length, 30, `${fields}`);
    assert.equal(fields[0], "1.0");
    assert.match(fields[1], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    assert.deepEqual(fields.slice(7, 11), ["authenticated", account, account, "blob"]);
    assert.match(fields[27], /azsdk-js-/);
  }

  const logs = service.getContainerClient("$logs");
  const [log] = await collect(logs.listBlobsFlat({ prefix: "blob/", includeMetadata: true }));
  assert.match(log.name, /^blob\/\d{4}\/\d\d\/\d\d\/\d\d00\/\d{6}\.log$/);
  assert.equal(log.metadata.LogVersion, "1.0");
  assert.ok(log.metadata.StartTime <= log.metadata.EndTime);
  assert.match(log.metadata.LogType, /^(read|write|delete)(,(read|write|delete))*$/);
  assert.ok(!namesOf(await collect(service.listContainers())).includes("$logs"));
});

scenario("analytics-metrics", "requests are counted by the hour and by the minute", async (t) => {
  t.after(() => service.setProperties({ hourMetrics: off, minuteMetrics: off }));
  const on = { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: retention };
  await service.setProperties({ hourMetrics: on, minuteMetrics: on });
  const container = await freshContainer(t);
  const began = minuteOf(new Date());
  await put(container, "counted");
  await textOf(container.getBlobClient("counted"));
  for (const period of ["Minute", "Hour"]) {
    const table = tableClient(`$Metrics${period}PrimaryTransactionsBlob`);
    const filter = period === "Minute" ? `PartitionKey ge '${began}'` : `PartitionKey ge '${began.slice(0, 11)}00'`;
    const rows = await eventually(`${period} metrics`, async () => {
      // Until there are any, their table may not be there.
      const rows = await collect(table.listEntities({ queryOptions: { filter } })).catch(() => []);
      return rows.some(({ rowKey }) => rowKey === "user;GetBlob") && rows;
    });
    const all = rows.find(({ rowKey }) => rowKey === "user;All");
    assert.ok(all.TotalRequests >= 2n && all.TotalIngress > 0n && all.TotalEgress > 0n, `${period}`);
    assert.ok(all.Availability > 0 && all.Availability <= 100);
    const put = rows.find(({ rowKey }) => rowKey === "user;PutBlob");
    assert.ok(put.Success >= 1n && put.PercentSuccess > 0);
  }
});

/** The partition of a minute's metrics. */
const minuteOf = (time) => `${time.toISOString().slice(0, 16).replace(/[-:]/g, "")}`;
