import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { ZipFile } from "yazl";
import { eventually } from "../helpers/programs/programs.ts";
import { writeAccessLog } from "./access-log.ts";
import { clusterVariables, form, Installation } from "./installation.ts";
import { everyRunOnce } from "./scheduled-runs.ts";

const LINES = 40_000;
const SETTLE_DEADLINE_MS = 180_000;

const cluster = inject("cluster");
const engines: readonly (readonly [name: string, settings: Readonly<Record<string, string>> | undefined])[] = [
  ["embedded", { ODP_STORE: "embedded" }],
  ["cluster", cluster.available ? clusterVariables(cluster.settings) : undefined],
];

describe.each(engines)("the main job on the %s engine", (_name, settings) => {
  const it = test.skipIf(settings === undefined);
  let odp: Installation;
  let logs: string;

  beforeAll(async () => {
    if (!settings) return;
    odp = await Installation.start(settings);
    logs = join(odp.folder, "logs");
    await mkdir(logs);
  });

  afterAll(async () => {
    if (settings) await odp.stop();
  });

  it("signs in, and is told to when it is not", async () => {
    const response = await fetch(`${odp.url}/host`);
    expect(await response.json()).toEqual({ status: "signin", message: "/user/login" });
    const basic = Buffer.from("matrix.admin:correct horse battery").toString("base64");
    const authorized = await fetch(`${odp.url}/host`, { headers: { authorization: `Basic ${basic}` } });
    expect(await authorized.json()).toEqual({ status: "ok", message: [] });
  });

  it("enrols an agent", async () => {
    await odp.enrol("web-1");
    expect(await odp.ok("GET", "/host/web-1")).toMatchObject({ host: "web-1", isagent: 1 });
  });

  it("runs a command on it and streams the output back", async () => {
    const param = JSON.stringify({ cmd: "echo out; echo more", "HOST!": "web-1", timeout: 20 });
    const path = `/job/remote_command@system/common?receive_output=true&param=${encodeURIComponent(param)}`;
    expect(await odp.ok("GET", path)).toContain("out\nmore");
  });

  it("deploys a depot with versions", async () => {
    await odp.ok(
      "POST",
      "/monitoring/depot",
      form({ name: "probe", version: "1.0.0", remark: "first" }, { "probe.zip": await probe("one") }),
    );
    await odp.ok(
      "PUT",
      "/monitoring/depot",
      form({ name: "probe", version: "1.1.0" }, { "probe.zip": await probe("two") }),
    );
    expect(await odp.ok("GET", "/monitoring/depot/probe")).toMatchObject({
      version: "1.1.0",
      versions: ["1.0.0", "1.1.0"],
    });
    const deployed = await odp.ok(
      "POST",
      "/monitoring/deploy",
      form({ hosts: "web-1", depots: "probe", versions: "1.1.0", command: "sh probe.sh" }),
    );
    expect(deployed).toMatchObject([{ host: "web-1", depot: "probe", version: "1.1.0", state: "ok" }]);
  });

  it("has classes and rules", async () => {
    await odp.mql(
      "create class if not exists /matrix/e2e/access (client varchar, path varchar, status int, n bigint, index(client)) with kind='record'",
    );
    await odp.mql("create class if not exists /matrix/e2e/tick (text varchar, index(text)) with kind='record'");
    const grok =
      '--class=/matrix/e2e/access\n--parser=grok\n--pattern_1=%{IP:client} - - \\[%{HTTPDATE}\\] "%{WORD} %{NOTSPACE:path}[^"]*" %{INT:status:int} %{INT:n:int}\n';
    await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: "/matrix/rules/e2e/access", value: grok }));
    const text = "--class=/matrix/e2e/tick\n--parser=text\n--fields=text\n";
    await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: "/matrix/rules/e2e/tick", value: text }));
  });

  it("counts every line and every run exactly once, though the log rotates and both programs are killed", async () => {
    const tell = { class: "/matrix/e2e/tick", name: "tell", script: "DATACHANGE = true", attr: { before: "true" } };
    await odp.ok("PUT", "/mxobject/trigger", JSON.stringify(tell));
    const heard = await odp.listen("datachange");
    await odp.ok(
      "POST",
      "/monitoring/policy/log",
      JSON.stringify({
        name: "access",
        rule: "/matrix/rules/e2e/access",
        dir: logs,
        match: "^access\\.log(\\.\\d+)?$",
        hosts: ["web-1"],
      }),
    );
    await odp.ok(
      "POST",
      "/monitoring/policy",
      JSON.stringify({
        name: "tick",
        rule: "/matrix/rules/e2e/tick",
        command: "sh probe.sh",
        ctype: 0,
        depotname: "probe",
        depotversion: "1.1.0",
        interval: 1,
        unit: "second",
        hosts: ["web-1"],
      }),
    );
    const killed = { agent: false, controller: false };
    await writeAccessLog({
      folder: logs,
      lines: LINES,
      rotateEveryLines: 6_000,
      linesPerBurst: 200,
      pauseMs: 60,
      onProgress: async (written) => {
        if (written > LINES / 3 && !killed.agent) {
          killed.agent = true;
          await odp.agent("web-1").kill("SIGKILL");
          await odp.startAgent("web-1");
        }
        if (written > (2 * LINES) / 3 && !killed.controller) {
          killed.controller = true;
          await odp.controller.kill("SIGKILL");
          await odp.startController();
        }
      },
    });
    const counted = await eventually("all lines are counted", SETTLE_DEADLINE_MS, async () => {
      const [row] = await odp.mql(
        "select count(*), sum(n) as total, min(n) as low, max(n) as high from /matrix/e2e/access",
      );
      return Number(row?.["count"]) >= LINES ? row : undefined;
    });
    expect(counted).toMatchObject({ count: LINES, total: (LINES * (LINES - 1)) / 2, low: 0, high: LINES - 1 });
    expect(heard.frames[0]).toMatchObject({ keyspace: "/matrix", subject: "datachange" });
    heard.close();
    await everyRunOnce(odp, "tick");
  });

  it("answers MQL with where, limit and meta", async () => {
    const statement = "select client, n, status from /matrix/e2e/access where client='10.0.1.44' and n < 1000 limit 5";
    const envelope = await odp.call("POST", "/mxobject/mql", new URLSearchParams({ mql: statement, meta: "true" }));
    expect(envelope).toMatchObject({
      status: "ok",
      message: [{ client: "10.0.1.44", n: 300, status: 200 }],
      meta: { type: "select", rootclass: "/matrix/e2e/access" },
    });
  });

  it("stops what is undeployed", async () => {
    await odp.ok("POST", "/monitoring/policy/undeploy/tick");
    await odp.ok("POST", "/monitoring/undeploy", form({ hosts: "web-1", depots: "probe", versions: "1.1.0" }));
    await odp.ok("DELETE", "/monitoring/policy/access?force=true");
  });
});

async function probe(word: string): Promise<Uint8Array> {
  const zip = new ZipFile();
  zip.addBuffer(Buffer.from(`#!/bin/sh\necho ${word}\n`), "probe.sh", { mode: 0o100755 });
  zip.end();
  const parts: Uint8Array[] = [];
  for await (const part of zip.outputStream as AsyncIterable<Uint8Array>) parts.push(part);
  return Buffer.concat(parts);
}
