import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { OdpClient } from "../../../../common/client/index.ts";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import type { CommandOutcome, DispatchOptions } from "../../hosts/index.ts";

let world: Awaited<ReturnType<typeof openMonitoring>>;
let client: OdpClient;
beforeEach(async () => {
  world = await openMonitoring();
  const url = await world.http.app.listen({ host: "127.0.0.1", port: 0 });
  client = new OdpClient({ url, session: await world.http.signIn("admin") });
});
afterEach(async () => {
  // An aborted client may have opened a connection that it never used.
  world.http.app.server.closeAllConnections();
  await world[Symbol.asyncDispose]();
});

const path = { path: "remote_command@system/common" };
const query = { param: JSON.stringify({ cmd: "work", "HOST!": "h1" }), timeout: 130 };

/** Sets the host's behaviour: `work` gets the options of the command and answers its outcome. */
function onHost(work: (options: DispatchOptions) => Promise<Partial<CommandOutcome>>): void {
  world.hosts.dispatch = async (_principal, host, _command, options) => {
    return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: Date.now(), ...(await work(options)) };
  };
}

test("output is answered as it comes, each stream by its name, and the end with its exit code", async () => {
  let goOn: () => void = () => undefined;
  const read = new Promise<void>((resolve) => (goOn = resolve));
  onHost(async ({ onOutput, timeoutMs }) => {
    expect(timeoutMs).toBeGreaterThan(120_000);
    onOutput?.({ stderr: false, data: Buffer.from("first\n") });
    // The command writes nothing more until its caller has read this.
    await read;
    onOutput?.({ stderr: true, data: Buffer.from("second\n") });
    return { state: "failed", code: 3, message: "The command ended with code 3." };
  });
  const lines: unknown[] = [];
  for await (const line of client.lines("getJobByPath", { path, query }, { signal: AbortSignal.timeout(20_000) })) {
    lines.push(line);
    goOn();
  }
  // The run id may come at any time before the end.
  const told = lines.findIndex((line) => Object.keys(line as object).join() === "runid");
  expect(lines.splice(told, 1)).toEqual([{ runid: expect.any(String) as string }]);
  expect(lines).toEqual([
    { host: "h1", stream: "stdout", data: Buffer.from("first\n").toString("base64") },
    { host: "h1", stream: "stderr", data: Buffer.from("second\n").toString("base64") },
    {
      runid: expect.any(String),
      runs: [{ host: "h1", state: "failed", code: 3, message: "The command ended with code 3." }],
      skipped: 0,
    },
  ]);
});

test("who goes away cancels the command on its host, and the run is on record as cancelled", async () => {
  let ended: (outcome: string) => void = () => undefined;
  const end = new Promise<string>((resolve) => (ended = resolve));
  onHost(async ({ onOutput, signal }) => {
    onOutput?.({ stderr: false, data: Buffer.from("begun\n") });
    if (!signal) throw new Error("The command cannot be cancelled.");
    await once(signal, "abort");
    ended("cancelled");
    return { state: "cancelled", message: "The command was cancelled." };
  });
  const leaving = new AbortController();
  const reading = async () => {
    for await (const line of client.lines("getJobByPath", { path, query }, { signal: leaving.signal }))
      if (line !== undefined) leaving.abort();
  };
  await expect(reading()).rejects.toThrow();
  expect(await end).toBe("cancelled");
  await world.runs.close();
});

test("what is refused is told as it is elsewhere", async () => {
  const bad = { ...query, param: JSON.stringify({ cmd: "work", "HOST!": [] }) };
  const read = async () => {
    for await (const line of client.lines(
      "getJobByPath",
      { path, query: bad },
      { signal: AbortSignal.timeout(20_000) },
    ))
      throw new Error(JSON.stringify(line));
  };
  await expect(read()).rejects.toMatchObject({ code: "invalid" });
});
