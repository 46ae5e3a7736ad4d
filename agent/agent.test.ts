import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { appendFile, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { realClock, seededRandom } from "../test/helpers/time/clock.ts";
import { Journal } from "./commands/journal.ts";
import { Outbox } from "./outbox/outbox.ts";
import {
  controller,
  folder,
  useAgents,
  startAgent,
  exec,
  result,
  commandPolicy,
  logPolicy,
} from "../test/helpers/hosts/agent-world.ts";

useAgents();

async function tokenTried(): Promise<unknown> {
  return (JSON.parse(await readFile(join(folder, "identity.json"), "utf8")) as { readonly token?: unknown }).token;
}

describe("enrolment", () => {
  it("makes this host known and brings it into a session over mutual TLS", async () => {
    startAgent();
    await controller.connected();
    expect(controller.hellos[0]).toMatchObject({
      protocol: 1,
      firstSequence: 1,
      facts: { host: "web-1", pid: process.pid },
    });
    expect((await stat(join(folder, "identity.json"))).mode & 0o777).toBe(0o600);
  });

  it("happens once: a restart needs no token", async () => {
    const first = startAgent();
    await controller.connected();
    first.end.abort();
    await first.done;
    controller.refuseEnrolment = { code: "denied", message: "used" };
    startAgent({ token: undefined });
    await controller.connected(2);
    expect(controller.hellos[1]?.streamId).toBe(controller.hellos[0]?.streamId);
  });

  it("happens again with a new token: the agent keeps its name and what it has not delivered", async () => {
    const first = startAgent();
    await controller.connected();
    first.end.abort();
    await first.done;
    controller.token = { id: "t2", secret: "s2" };
    await expect(startAgent({ name: "web-2", isNamed: true }).done).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("has the data of the host web-1"),
    });
    const second = startAgent();
    await controller.connected(2);
    expect(second.lines.join("\n")).toContain("info enrolled");
    expect(controller.hellos[1]?.streamId).toBe(controller.hellos[0]?.streamId);
    second.end.abort();
    await second.done;
    expect(await tokenTried()).toBe("t2");
  });

  it("does not happen again if the agent is told to enrol once", async () => {
    const first = startAgent();
    await controller.connected();
    first.end.abort();
    await first.done;
    controller.token = { id: "t2", secret: "s2" };
    startAgent({ enrolsAgain: false });
    await controller.connected(2);
    expect(await tokenTried()).toBe("t1");
  });

  it("stays as it is if a new token is refused, which is tried once", async () => {
    const first = startAgent();
    await controller.connected();
    first.end.abort();
    await first.done;
    controller.token = { id: "t2", secret: "s2" };
    controller.refuseEnrolment = { code: "conflict", message: "used" };
    const second = startAgent();
    await controller.connected(2);
    expect(second.lines.join("\n")).toContain("warn the join token is not taken");
    expect(await tokenTried()).toBe("t2");
  });

  it("ends with the controller's reason when the token is refused", async () => {
    controller.refuseEnrolment = { code: "denied", message: "The join token has expired." };
    await expect(startAgent().done).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("The join token has expired."),
    });
  });

  it("believes nobody who does not know the token's secret", async () => {
    controller.spoilProof = true;
    await expect(startAgent().done).rejects.toMatchObject({ code: "denied" });
    await expect(stat(join(folder, "identity.json"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("lets a second agent not work in the same folder only while the first lives", async () => {
    await writeFile(join(folder, "agent.pid"), `${process.ppid} ${await birth(process.ppid)}`);
    await expect(startAgent().done).rejects.toMatchObject({ code: "conflict" });
    await writeFile(join(folder, "agent.pid"), `${process.ppid} 1`);
    startAgent();
    await controller.connected();
  });
});

describe("the certificate", () => {
  it("is renewed on the way: the new session begins before the old one ends, and no entry is lost", async () => {
    controller.certificateLifeMs = 3_000;
    controller.want({
      revision: 1,
      policies: [commandPolicy({ command: "seq 100", split: true, interval: 1, unit: "second" })],
    });
    startAgent();
    await controller.connected();
    const before = await certificate();
    controller.certificateLifeMs = 86_400_000;
    await controller.connected(2);
    await controller.until("runs after the change", () => controller.bodies("run").length >= 4);
    expect((await certificate()).fingerprint256).not.toBe(before.fingerprint256);
    expect(controller.records().length % 100).toBe(0);
  });
});

describe("policies", () => {
  it("go on by what was wanted last while no controller is there", async () => {
    await mkdir(join(folder, "logs"));
    controller.want({ revision: 7, policies: [logPolicy({ dir: join(folder, "logs"), match: "^app\\.log$" })] });
    const first = startAgent();
    await controller.connected();
    await controller.until("state taken", () => first.lines.some((line) => line.includes("policy at work")));
    first.end.abort();
    await first.done;
    controller.deafen();
    await appendFile(join(folder, "logs/app.log"), "one\n");
    startAgent();
    await appendFile(join(folder, "logs/app.log"), "two\n");
    await controller.listen();
    await controller.connected(2);
    expect(controller.hellos[1]?.desiredRevision).toBe(7);
    await controller.until("records", () => controller.records().length === 2);
    expect(controller.records()).toEqual(["one", "two"]);
  });

  it("get their conf beside their working files, and lose it with the deployment", async () => {
    const line = 'stat -c %a "$ODP_POLICY_CONF" && od -An -tx1 "$ODP_POLICY_CONF" && cmp "$ODP_POLICY_CONF" p.conf';
    const policy = commandPolicy({ command: line, interval: 1, unit: "second", split: false });
    controller.want({ revision: 1, policies: [{ ...policy, conf: Buffer.from([0xc4, 0xe3, 0x00]) }] });
    const agent = startAgent();
    const has = (text: string) => controller.until(text, () => controller.records("p").at(-1)?.trim() === text);
    await has("600\n c4 e3 00");
    controller.want({ revision: 2, policies: [{ ...policy, conf: Buffer.from("b") }] });
    await has("600\n 62");
    const gone = commandPolicy({
      command: "ls; echo $ODP_POLICY_CONF none",
      interval: 1,
      unit: "second",
      split: false,
    });
    controller.want({ revision: 3, policies: [gone] });
    await has("none");
    controller.want({ revision: 4, policies: [] });
    await controller.until("folder gone", () => !existsSync(join(folder, "policies/p-p")));
    // A policy that cannot run has no marks.
    controller.want({ revision: 5, policies: [{ ...policy, spec: '{"kind":"command"}', conf: Buffer.from("c") }] });
    await controller.until("conf", () => existsSync(join(folder, "policies/p-p/p.conf")));
    controller.want({ revision: 6, policies: [] });
    await controller.until("folder gone again", () => !existsSync(join(folder, "policies/p-p")));
    agent.end.abort();
    await agent.done;
  });

  it("that nobody can carry out are told with the heartbeat", async () => {
    controller.want({
      revision: 1,
      policies: [commandPolicy({ command: "true", delimiter: "(", interval: 1, unit: "second" })],
    });
    const agent = startAgent();
    await controller.until("complaint", () =>
      agent.lines.some((line) => line.includes("policy fails") && line.includes("regular expression")),
    );
  });

  it("send the records of a file that is renamed and made anew again and again, each once", async () => {
    const dir = join(folder, "logs");
    await mkdir(dir);
    controller.want({ revision: 1, policies: [logPolicy({ dir, match: "^app\\.log$" })] });
    startAgent();
    await appendFile(join(dir, "app.log"), "first\n");
    await controller.until("first record", () => controller.records().length === 1);
    const expected = ["first"];
    for (let generation = 0; generation < 10; generation++) {
      for (let chunk = 0; chunk < 20; chunk++) {
        const lines = Array.from({ length: 100 }, (_, index) => `${generation}-${chunk}-${index}`);
        expected.push(...lines);
        await appendFile(join(dir, "app.log"), `${lines.join("\n")}\n`);
      }
      for (let age = generation; age > 0; age--)
        await rename(join(dir, `app.log.${age}`), join(dir, `app.log.${age + 1}`));
      await rename(join(dir, "app.log"), join(dir, "app.log.1"));
    }
    await controller.until("records", () => controller.records().length >= expected.length);
    expect(controller.records().sort()).toEqual(expected.sort());
    expect(controller.bodies("gap")).toEqual([]);
  });
});

describe("the outbox", () => {
  it("that a controller knows more of than it holds goes on as a new stream", async () => {
    const first = startAgent();
    await controller.connected();
    controller.command({ id: "c1", body: exec("true") });
    await result("c1", "ok");
    first.end.abort();
    await first.done;
    await rm(join(folder, "outbox"), { recursive: true });
    controller.welcome = { acknowledged: 50 };
    startAgent();
    await controller.until("hello", () => controller.hellos.length >= 2);
    controller.welcome = {};
    await controller.until(
      "hello of a new stream",
      () => controller.hellos.at(-1)?.streamId !== controller.hellos[1]?.streamId,
    );
  });

  it("that was full to the last byte when the agent was killed is emptied, and takes the results of what was interrupted", async () => {
    const outboxMaxBytes = 256 * 1024;
    const full = await Outbox.open({
      folder: join(folder, "outbox"),
      clock: realClock,
      random: seededRandom(1),
      maxBytes: outboxMaxBytes,
    });
    await new Journal(full, realClock).start("c1", 60_000, "");
    const output = {
      $case: "output" as const,
      value: { commandId: "c0", stderr: false, offset: 0, data: Buffer.alloc(10_000) },
    };
    while (full.hasRoom(true)) await full.append([{ body: output }], { reserve: true });
    await full.close();
    startAgent({ outboxMaxBytes });
    await result("c1", "interrupted");
  });
});

async function certificate(): Promise<X509Certificate> {
  const identity: { certificate: string } = JSON.parse(await readFile(join(folder, "identity.json"), "utf8"));
  return new X509Certificate(Buffer.from(identity.certificate, "base64"));
}

async function birth(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}
