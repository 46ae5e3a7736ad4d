import { spawn, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { freePorts } from "../local/process.ts";
import { COLUMNS, RECORDED } from "./session.ts";
import { recordingSvg, type Recorded } from "./svg.ts";

/**
 * `npm run record`: runs the commands of the recording on a terminal, against a controller with its demonstration, and
 * writes `deploy/docs/first-minutes.svg`. `npm run build` comes before. It needs `script` of util-linux.
 */
const PASSWORD = "correct horse battery";
/** Time for the controller to start, and for the demonstration to collect some rows. */
const START_MS = 60_000;
const DEMONSTRATION_MS = 20_000;
const LOOK_EVERY_MS = 200;

const folder = await mkdtemp(join(tmpdir(), "odp-recording-"));
const [port, agentPort] = await freePorts(2);
const url = `http://127.0.0.1:${port}`;
const controller = spawn(process.execPath, ["dist/controller.js"], {
  env: {
    ...process.env,
    ...{ ODP_PORT: String(port), ODP_AGENT_PORT: String(agentPort) },
    ...{ ODP_DATA_DIR: folder, ODP_ADMIN_PASSWORD: PASSWORD },
  },
  stdio: ["ignore", "ignore", "inherit"],
});
try {
  await ready();
  await setTimeout(DEMONSTRATION_MS);
  const recorded = RECORDED.map((command): Recorded => ({ command, output: shownBy(command) }));
  await writeFile("deploy/docs/first-minutes.svg", recordingSvg(recorded, COLUMNS));
} finally {
  controller.kill("SIGTERM");
  await once(controller, "exit");
  await rm(folder, { recursive: true, force: true });
}

async function ready(): Promise<void> {
  for (let waitedMs = 0; waitedMs < START_MS; waitedMs += LOOK_EVERY_MS) {
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    if (answer?.ok === true) return;
    await setTimeout(LOOK_EVERY_MS);
  }
  throw new Error("The controller did not start.");
}

/** Runs a command of the command line on a terminal, without colours. */
function shownBy(command: string): string {
  const line = `stty cols ${COLUMNS}; odp() { "${process.execPath}" "${resolve("dist/odp.js")}" "$@"; }; ${command}`;
  return execFileSync("script", ["-qec", line, "/dev/null"], {
    encoding: "utf8",
    env: { ...process.env, ODP_URL: url, ODP_PASSWORD: PASSWORD, NO_COLOR: "1", PAGER: "cat", SHELL: "/bin/sh" },
  });
}
