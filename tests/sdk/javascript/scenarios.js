// Runs scenarios as tests and records one outcome for each: a JSON line in the file that LARIMAR_RESULTS names.
// Several tests may show one scenario; it passed when none of them failed. Both JavaScript suites use this file.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { test } from "node:test";

const list = readFileSync(new URL("../scenarios.toml", import.meta.url), "utf8").split("[[scenario]]").slice(1);
const field = (entry, name) => entry.match(new RegExp(`^${name} = "(.+)"$`, "m"))?.[1];
const serviceOf = new Map(list.map((entry) => [field(entry, "id"), field(entry, "service") ?? "table"]));
const rank = { skipped: 0, passed: 1, failed: 2 };

/**
 * Gives the function `scenario(id, title, body)` of a suite; `finish()` comes after the last scenario. `versions` tells
 * the package's version for each service that the suite has one for.
 */
export function suite(sdk, versions) {
  const scenarioIds = [...serviceOf.keys()].filter((id) => serviceOf.get(id) in versions);
  const outcomes = new Map();

  function note(id, outcome, detail) {
    if (!outcomes.has(id) || rank[outcome] > rank[outcomes.get(id).outcome]) {
      outcomes.set(id, { outcome, detail });
    }
  }

  function scenario(id, title, body) {
    assert.ok(scenarioIds.includes(id), `${id} is not among the scenarios for this suite in scenarios.toml`);
    test(`${id}: ${title}`, async (t) => {
      try {
        await body(t);
        note(id, "passed", "");
      } catch (error) {
        note(id, "failed", `${title}: ${error.message}`);
        throw error;
      }
    });
  }

  function skip(id, reason) {
    test(id, { skip: reason }, () => {});
    note(id, "skipped", reason);
  }

  function finish() {
    test("every scenario of the list ran", () => {
      const missing = scenarioIds.filter((id) => !outcomes.has(id));
      missing.forEach((id) => note(id, "failed", "no test of this suite ran it"));
      assert.deepEqual(missing, []);
    });
    process.on("exit", () => write(sdk, versions, outcomes));
  }

  return { scenario, skip, finish };
}

function write(sdk, versions, outcomes) {
  const path = process.env.LARIMAR_RESULTS;
  if (!path) return;
  for (const [scenario, result] of outcomes) {
    const version = versions[serviceOf.get(scenario)];
    appendFileSync(path, JSON.stringify({ sdk, version, scenario, ...result }) + "\n");
  }
}
