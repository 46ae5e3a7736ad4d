import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { Installation } from "./installation.ts";

const DEADLINE_MS = 90_000;

describe("a controller that is stopped in good order while a job runs", () => {
  let odp: Installation;

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded" });
    await odp.enrol("steady");
  });

  afterAll(() => odp.stop());

  test("ends no run: the command goes on, and the next start brings its one end and its whole output on record", async () => {
    const path = join(odp.folder, "restart");
    const cmd = `echo begun >> ${path}; echo first; while [ ! -e ${path}.end ]; do sleep 0.1; done; echo last`;
    const param = JSON.stringify({ cmd, "HOST!": "steady", timeout: 120 });
    const run = String(
      await odp.ok("GET", `/job/exec/remote_command@system/common?param=${encodeURIComponent(param)}`),
    );
    await eventually("the command runs", DEADLINE_MS, () => existsSync(path) || undefined);
    await odp.controller.kill("SIGTERM");
    await odp.startController();
    const rows = (): Promise<Record<string, unknown>[]> =>
      odp.mql(`select host, status, out from /matrix/jobs/jobrun where runid='${run}' limit -1`);
    expect(await rows()).toMatchObject([{ host: "steady", status: "running" }]);
    await writeFile(`${path}.end`, "");
    const ended = await eventually("the run has ended", DEADLINE_MS, async () => {
      const found = await rows();
      return found.every((row) => row["status"] !== "running") ? found : undefined;
    });
    expect(ended).toMatchObject([{ host: "steady", status: "ok", out: "first\nlast\n" }]);
    expect(await readFile(path, "utf8")).toBe("begun\n");
  });
});
