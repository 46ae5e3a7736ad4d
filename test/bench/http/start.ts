import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Installation } from "../../e2e/installation.ts";
import { inTurns, type Bench, type Figure } from "../driver/frame.ts";

const ROUNDS = 41;
const PROGRAM = "dist/odp.js";
const COMMAND_MAX_MS = 60_000;
const PASSWORD = "correct horse battery";

/** The time of a whole command, beside a Node that does nothing. `ODP_BENCH_NODE` names another Node. */
export const startBench: Bench = {
  name: "start",
  async run() {
    const odp = await Installation.start({ ODP_ADMIN_PASSWORD: PASSWORD });
    const folder = await mkdtemp(join(tmpdir(), "odp-bench-start-"));
    const environment = { PATH: process.env["PATH"], ODP_CONFIG_DIR: folder };
    try {
      await tookMs([PROGRAM, "login", odp.url, "--user", "matrix.admin"], environment, PASSWORD);
      const figures: Figure[] = [];
      for (const words of ["--version", "host list --help", "__complete -- host ", "host list -o json", "host list"])
        figures.push(await figureOf(words, environment));
      return figures;
    } finally {
      await odp.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function figureOf(words: string, environment: NodeJS.ProcessEnv): Promise<Figure> {
  const command = [PROGRAM, ...words.split(" ")];
  const times = await inTurns(
    () => tookMs(command, environment),
    () => tookMs(["-e", "0"], environment),
    ROUNDS,
  );
  return { name: `odp ${words}`, unit: "ms", ...times, againstName: "node -e 0", kind: "ratio", goal: 0 };
}

async function tookMs(words: readonly string[], env: NodeJS.ProcessEnv, input = ""): Promise<number> {
  const began = performance.now();
  const node = process.env["ODP_BENCH_NODE"] ?? process.execPath;
  const child = spawn(node, words, { env, stdio: "pipe", timeout: COMMAND_MAX_MS });
  child.stdin.end(input);
  child.stdout.resume();
  child.stderr.resume();
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}.`);
  return performance.now() - began;
}
