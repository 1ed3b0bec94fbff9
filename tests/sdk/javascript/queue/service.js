// Settings of the queue service as a whole, and its statistics.

import assert from "node:assert/strict";
import { endpoint, keyCredential, refused, scenario, serviceClient } from "./target.js";

const service = serviceClient();
const retention = (days) => ({ enabled: true, days });
const logging = (days) => (
  { version: "1.0", read: true, write: true, deleteProperty: false, retentionPolicy: retention(days) }
);
const metrics = (days) => ({ version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: retention(days) });
const off = { version: "1.0", enabled: false, retentionPolicy: { enabled: false } };
const quiet = {
  version: "1.0", read: false, write: false, deleteProperty: false, retentionPolicy: { enabled: false },
};
const rule = (origin = "http://www.xyz.com") => ({
  allowedOrigins: `${origin},http://www.abc.com`, allowedMethods: "GET,PUT,POST",
  allowedHeaders: "x-ms-meta-abc,x-ms-meta-data*", exposedHeaders: "x-ms-meta-source*", maxAgeInSeconds: 500,
});

async function settings() {
  const { queueAnalyticsLogging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
  return JSON.parse(JSON.stringify({ queueAnalyticsLogging, hourMetrics, minuteMetrics, cors: cors ?? [] }));
}

/** The settings belong to the whole account, so they are put back when the test ends. */
async function restoredAfter(t) {
  const before = await settings();
  t.after(() => service.setProperties(before));
}

scenario("queue-service-properties", "settings are read back and omitted parts keep theirs", async (t) => {
  await restoredAfter(t);
  const expected = {
    queueAnalyticsLogging: logging(5), hourMetrics: metrics(6), minuteMetrics: off, cors: [rule(), rule("*")],
  };
  await service.setProperties(expected);
  assert.deepEqual(await settings(), expected);
  for (const part of [
    { minuteMetrics: metrics(7) }, { queueAnalyticsLogging: quiet }, { cors: [rule("http://one.example")] },
    { cors: [] }, { hourMetrics: off },
  ]) {
    await service.setProperties(part);
    Object.assign(expected, part);
    assert.deepEqual(await settings(), expected);
  }
});

scenario("queue-service-properties", "wrong settings are refused and change nothing", async (t) => {
  await restoredAfter(t);
  await service.setProperties({ hourMetrics: metrics(6), cors: [rule()] });
  const before = await settings();
  await refused(400, "InvalidXmlDocument", service.setProperties({ cors: Array.from({ length: 6 }, () => rule()) }));
  await refused(400, "InvalidXmlDocument", service.setProperties({ hourMetrics: metrics(366) }));
  assert.deepEqual(await settings(), before);
});

scenario("queue-service-stats", "statistics come from the secondary endpoint", async () => {
  const { geoReplication } = await serviceClient(keyCredential, `${endpoint}-secondary`).getStatistics();
  assert.equal(geoReplication.status, "live");
  assert.ok(geoReplication.lastSyncOn instanceof Date && geoReplication.lastSyncOn <= new Date());
  await refused(400, "InvalidQueryParameterValue", service.getStatistics());
});
