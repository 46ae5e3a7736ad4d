import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { mountSmallDisk } from "../helpers/programs/small-disk.ts";
import { Installation } from "./installation.ts";

const SMALL_DISK_KIB = 8_192;
const RECOVERY_DEADLINE_MS = 60_000;
const REFUSALS = 200;

const disk = await mountSmallDisk(SMALL_DISK_KIB);

describe.skipIf(disk === undefined)("a controller whose disk is full", () => {
  let odp: Installation;

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded", ODP_DATA_DIR: join(disk!.folder, "data") });
    await odp.mql("create class /matrix/full (name varchar)");
    await odp.mql("insert into /matrix/full name='before'");
  });

  afterAll(async () => {
    await disk!.makeRoom();
    await odp.stop();
    await disk![Symbol.asyncDispose]();
  });

  test("stays up, answers queries, refuses changes by name, and takes them again when there is room", async () => {
    await disk!.fill();
    let full = 0;
    for (let i = 0; i < REFUSALS; i += 1) {
      const refused = await odp.call(
        "POST",
        "/mxobject/mql",
        new URLSearchParams({ mql: `insert into /matrix/full name='refused-${i}-${"x".repeat(2_000)}'` }),
      );
      if (refused.status === "ok") continue;
      // The disk of a busy machine may also be slow.
      const message = expect.stringMatching(/disk is full|The disk did not answer in time/);
      expect(refused).toMatchObject({ code: "unavailable", message });
      if (String(refused.message).includes("disk is full")) full += 1;
    }
    expect(full).toBeGreaterThan(REFUSALS / 2);
    expect(await odp.mql("select name from /matrix/full where name='before'")).toMatchObject([{ name: "before" }]);
    expect(odp.controller.running).toBe(true);
    await disk!.makeRoom();
    await eventually("the store takes changes again", RECOVERY_DEADLINE_MS, async () => {
      return (
        (await odp.call("POST", "/mxobject/mql", new URLSearchParams({ mql: "insert into /matrix/full name='after'" })))
          .status === "ok" || undefined
      );
    });
    expect(await odp.mql("select name from /matrix/full where name='after'")).toMatchObject([{ name: "after" }]);
  });

  test("waits with its start, with the reason, until there is room", async () => {
    await odp.controller.kill("SIGKILL");
    await disk!.fill();
    odp.beginController({});
    await odp.controller.printed(/the start waits for the stores[^]*disk is full|disk is full[^]*the start waits/);
    await disk!.makeRoom();
    await odp.ready();
    expect(await odp.mql("select name from /matrix/full where name='before'")).toMatchObject([{ name: "before" }]);
  });
});
