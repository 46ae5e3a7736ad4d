import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD } from "../../test/helpers/http/http-app.ts";
import { openMonitoring } from "../../test/helpers/jobs/monitoring.ts";
import { testPrincipal } from "../../test/helpers/time/runtime.ts";
import type { CommandOutcome, DispatchOptions } from "../areas/hosts/index.ts";

/** The command line as a process of its own, which gets the signals of a terminal. */

const PATIENCE = { timeout: 30_000 };

let world: Awaited<ReturnType<typeof openMonitoring>>;
let url: string;
beforeAll(async () => {
  world = await openMonitoring();
  url = await world.http.app.listen({ host: "127.0.0.1", port: 0 });
  await world.jobs.save(testPrincipal(), { name: "backup", dir: "common/x", exec: ["x"], host: ["h1", "h2"] });
});
afterAll(async () => {
  world.http.app.server.closeAllConnections();
  await world[Symbol.asyncDispose]();
});

function onHosts(work: (host: string, options: DispatchOptions) => Promise<Partial<CommandOutcome>>): void {
  world.hosts.dispatch = async (_principal, host, _command, options) => {
    options.onOutput?.({ stderr: false, data: Buffer.from(`${host} begun\n`) });
    return {
      host,
      state: "ok",
      code: 0,
      message: "",
      startedMs: 1,
      endedMs: Date.now(),
      ...(await work(host, options)),
    };
  };
}

function odp(...words: readonly string[]) {
  const environment = { ...process.env, ODP_URL: url, ODP_USER: "matrix.admin", ODP_PASSWORD: PASSWORD };
  const child = spawn(process.execPath, ["--import", "tsx", "controller/cli/main.ts", ...words], { env: environment });
  const told = { out: "", err: "" };
  child.stdout.on("data", (data: Buffer) => (told.out += data.toString()));
  child.stderr.on("data", (data: Buffer) => (told.err += data.toString()));
  const exit = once(child, "close").then(([code]) => Number(code));
  return { told, exit, says: (text: string) => expect.poll(() => told.out, PATIENCE).toContain(text), child };
}

test("odp job run passes on what its hosts write and the worst of their exit codes", async () => {
  onHosts((host) => Promise.resolve(host === "h2" ? { state: "failed", code: 7, message: "exit code 7" } : {}));
  const run = odp("job", "run", "backup@common/x", "--param", '{"LEVEL":"9"}');
  expect(await run.exit).toBe(7);
  expect(run.told.out.split("\n").sort()).toEqual(["", "h1: h1 begun", "h2: h2 begun"]);
  const raw = odp("job", "run", "backup@common/x", "--raw", "--host", "h1");
  expect(await raw.exit).toBe(0);
  expect(raw.told.out).toBe("h1 begun\n");
});

test("Ctrl-C cancels the run and waits for its end; a second one leaves", async () => {
  onHosts(async (_host, { signal }) => {
    if (signal && !signal.aborted) await once(signal, "abort");
    return { state: "cancelled", message: "ended by SIGTERM" };
  });
  const both = [odp("job", "run", "backup@common/x", "--host", "h1"), odp("exec", "h1", "sleep", "60")];
  for (const run of both) {
    await run.says("h1 begun");
    run.child.kill("SIGINT");
    expect(await run.exit).toBe(130);
    expect(run.told.err).toContain("h1: cancelled: ended by SIGTERM (cancelled by admin)");
  }

  let [isTold, release] = [false, (): void => undefined];
  const stubborn = new Promise<void>((resolve) => (release = resolve));
  onHosts(async (_host, { signal }) => {
    signal?.addEventListener("abort", () => (isTold = true), { once: true });
    await stubborn;
    return { state: "cancelled" };
  });
  const left = odp("exec", "h1", "sleep", "60");
  await left.says("h1 begun");
  left.child.kill("SIGINT");
  await expect.poll(() => isTold, PATIENCE).toBe(true);
  left.child.kill("SIGINT");
  expect(await left.exit).toBe(130);
  release();
});

test("an answer that cannot be written is told by the exit code; a reader that has read enough is no failure", async () => {
  const [full, environment] = [openSync("/dev/full", "w"), { ...process.env, ODP_URL: url, ODP_PASSWORD: PASSWORD }];
  const line = ["--import", "tsx", "controller/cli/main.ts", "job", "run", "backup@common/x"];
  onHosts(() => Promise.resolve({ state: "ok" }));
  const lost = spawn(process.execPath, line, { env: environment, stdio: ["ignore", full, "pipe"] });
  const told: Buffer[] = [];
  lost.stderr?.on("data", (data: Buffer) => told.push(data));
  const [code] = await once(lost, "close");
  expect(Buffer.concat(told).toString()).toMatch(/^odp: the output could not be written: ENOSPC/m);
  expect(code).toBe(74);
  closeSync(full);

  const enough = spawn(process.execPath, line, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
  enough.stdout.destroy();
  expect(await once(enough, "close")).toEqual([0, null]);
});
