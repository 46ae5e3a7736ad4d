import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Installation } from "../../e2e/installation.ts";
import { inTurns, type Bench, type Figure } from "../driver/frame.ts";
import { tookMs } from "../driver/timed-program.ts";

const ROUNDS = 41;
const PROGRAM = "dist/odp.js";
const NODE = process.env["ODP_BENCH_NODE"] ?? process.execPath;
const PASSWORD = "correct horse battery";

/** The time of a whole command, beside a Node that does nothing. `ODP_BENCH_NODE` names another Node. */
export const startBench: Bench = {
  name: "start",
  async run() {
    const odp = await Installation.start({ ODP_ADMIN_PASSWORD: PASSWORD });
    const folder = await mkdtemp(join(tmpdir(), "odp-bench-start-"));
    const environment = { PATH: process.env["PATH"], ODP_CONFIG_DIR: folder };
    try {
      const login = [NODE, PROGRAM, "login", odp.url, "--user", "matrix.admin"];
      await tookMs(login, { environment, input: PASSWORD });
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
  const timeOf = async (given: readonly string[]) => (await tookMs([NODE, ...given], { environment })).ms;
  const times = await inTurns(
    () => timeOf([PROGRAM, ...words.split(" ")]),
    () => timeOf(["-e", "0"]),
    ROUNDS,
  );
  return { name: `odp ${words}`, unit: "ms", ...times, againstName: "node -e 0", kind: "ratio", goal: 0 };
}
