// Settings of the service as a whole, and its statistics.

import assert from "node:assert/strict";
import azure from "azure-storage";
import { call, refused, scenario, service } from "./target.js";

const retention = (Days) => ({ Enabled: true, Days });
const logging = (days) => (
  { Version: "1.0", Delete: false, Read: true, Write: true, RetentionPolicy: retention(days) }
);
const metrics = (days) => ({ Version: "1.0", Enabled: true, IncludeAPIs: true, RetentionPolicy: retention(days) });
const off = { Version: "1.0", Enabled: false, RetentionPolicy: { Enabled: false } };
const quiet = { Version: "1.0", Delete: false, Read: false, Write: false, RetentionPolicy: { Enabled: false } };
const rule = (origin = "http://www.xyz.com") => ({
  AllowedMethods: ["GET", "PUT", "MERGE"], AllowedOrigins: [origin, "http://www.abc.com"],
  AllowedHeaders: ["x-ms-meta-abc", "x-ms-meta-data*"], ExposedHeaders: ["x-ms-meta-source*"], MaxAgeInSeconds: 500,
});

const settings = () => call(service, "getServiceProperties");
const set = (properties) => call(service, "setServiceProperties", properties);

/** The settings belong to the whole account, so they are put back when the test ends. */
async function restoredAfter(t) {
  const before = await settings();
  t.after(() => set({ Cors: {}, ...before }));
}

scenario("service-properties", "settings are read back and omitted parts keep theirs", async (t) => {
  await restoredAfter(t);
  const expected = {
    Logging: logging(5), HourMetrics: metrics(6), MinuteMetrics: off, Cors: { CorsRule: [rule(), rule("*")] },
  };
  await set(expected);
  assert.deepEqual(await settings(), expected);

  for (const part of [
    { MinuteMetrics: metrics(7) }, { Logging: quiet }, { Cors: { CorsRule: [rule("http://one.example")] } },
    { Cors: {} }, { HourMetrics: off },
  ]) {
    await set(part);
    Object.assign(expected, part);
    assert.deepEqual({ Cors: {}, ...(await settings()) }, expected);
  }
});

scenario("service-properties", "wrong settings are refused and change nothing", async (t) => {
  await restoredAfter(t);
  await set({ HourMetrics: metrics(6), Cors: { CorsRule: [rule()] } });
  const before = await settings();
  const six = Array.from({ length: 6 }, () => rule());
  await refused(400, "InvalidXmlDocument", set({ Cors: { CorsRule: six } }));
  await refused(400, "InvalidXmlDocument", set({ HourMetrics: metrics(366) }));
  assert.deepEqual(await settings(), before);
});

scenario("service-stats", "statistics come from the secondary endpoint", async () => {
  const locationMode = azure.StorageUtilities.LocationMode.SECONDARY_ONLY;
  const { GeoReplication } = await call(service, "getServiceStats", { locationMode });
  assert.equal(GeoReplication.Status, "live");
  assert.ok(GeoReplication.LastSyncTime instanceof Date && GeoReplication.LastSyncTime <= new Date());
  await refused(400, "InvalidQueryParameterValue", call(service, "getServiceStats"));
});
