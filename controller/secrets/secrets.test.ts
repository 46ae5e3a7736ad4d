import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { secretKeyLine } from "../../common/secret-key.ts";
import { isAlive } from "../../test/helpers/programs/processes.ts";
import { startSpawner } from "../../test/helpers/programs/spawner.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import type { Spawner } from "../processes/index.ts";
import { secretKeyOfCommand } from "./key-command.ts";
import { openSecretKey, secretBox, secretsOf } from "./index.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-secrets-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("secret box", () => {
  const key = randomBytes(32);
  const box = secretBox([key]);

  it("opens what it sealed, under the same context", () => {
    const sealed = box.seal("s3cret", "matrix/host/a");
    expect(sealed).not.toContain("s3cret");
    expect(sealed).toContain(box.keyId);
    expect(box.open(sealed, "matrix/host/a")).toBe("s3cret");
  });

  it("opens nothing under another context, changed, or cut off", () => {
    const sealed = box.seal("s3cret", "matrix/host/a");
    expect(() => box.open(sealed, "matrix/host/b")).toThrow(/matrix\/host\/b does not open/);
    const flipped = sealed.slice(0, -3) + (sealed.at(-3) === "A" ? "B" : "A") + sealed.slice(-2);
    expect(() => box.open(flipped, "matrix/host/a")).toThrow(/does not open/);
    expect(() => box.open(sealed.slice(0, 30), "matrix/host/a")).toThrow(/does not open/);
  });

  it("seals the same secret differently each time", () => {
    expect(box.seal("x", "c")).not.toBe(box.seal("x", "c"));
  });

  it("opens with an older key and seals with the first", () => {
    const rotated = secretBox([randomBytes(32), key]);
    expect(rotated.open(box.seal("old", "c"), "c")).toBe("old");
    expect(rotated.keyId).not.toBe(box.keyId);
    expect(() => box.open(rotated.seal("new", "c"), "c")).toThrow(/which this controller does not have/);
    expect(rotated.derive("t", box.keyId)).toEqual(box.derive("t"));
  });
});

describe("key file", () => {
  it("is made once, readable by its owner alone, also when several make it at once", async () => {
    const file = join(folder, "made", "secret.key");
    const boxes = await Promise.all(Array.from({ length: 8 }, () => openSecretKey({ file, create: true })));
    expect(new Set(boxes.map((box) => box.keyId)).size).toBe(1);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(file, "utf8")).toMatch(/^odp-key-1:/);
  });

  it("is required when it may not be made, and refused when it is no key file", async () => {
    await expect(openSecretKey({ file: join(folder, "none"), create: false })).rejects.toThrow(/ODP_SECRET_KEY_FILE/);
    await writeFile(join(folder, "bad"), "hello\n");
    await expect(openSecretKey({ file: join(folder, "bad"), create: true })).rejects.toThrow(/odp-key-1/);
  });
});

describe("a key from elsewhere", () => {
  let spawner: Spawner;
  beforeAll(async () => {
    spawner = await startSpawner();
  });
  afterAll(() => spawner.close());
  const world = () => ({ processes: spawner, clock: realClock, environment: process.env });
  const [newer, older] = [randomBytes(32), randomBytes(32)];
  const lines = `${secretKeyLine(newer)}# the one before\n${secretKeyLine(older)}`;
  const expected = secretBox([newer, older]).keyId;

  it("is the same key in a file, in a variable and written by a command, several of them too", async () => {
    const file = join(folder, "both.key");
    await writeFile(file, lines);
    const oneLine = `${secretKeyLine(newer).trim()},${secretKeyLine(older).trim()}`;
    for (const source of [
      { kind: "file", file, create: false },
      { kind: "text", text: oneLine },
      { kind: "command", command: `cat ${file}` },
    ] as const) {
      const box = await secretsOf(source, world());
      expect(box.keyId, source.kind).toBe(expected);
      expect(box.open(secretBox([older]).seal("s", "c"), "c")).toBe("s");
    }
  });

  it("is refused without telling what came when it is none", async () => {
    await expect(secretsOf({ kind: "text", text: "hunter2" }, world())).rejects.toThrow(
      /^(?!.*hunter2).*ODP_SECRET_KEY/,
    );
    await expect(secretsOf({ kind: "command", command: "echo hunter2" }, world())).rejects.toThrow(
      /^(?!.*hunter2).*odp-key-1/,
    );
  });

  it("of a command that fails, hangs, or writes without end is an error that says so, and nothing of it is left", async () => {
    await expect(secretKeyOfCommand({ ...world(), command: "exit 3" })).rejects.toThrow(/failed \(exit code 3\)/);
    await expect(secretKeyOfCommand({ ...world(), command: "yes" })).rejects.toThrow(/wrote more than/);
    const pidFile = join(folder, "pid");
    // The shell is not the one that hangs, and what hangs holds its output open.
    const hanging = secretKeyOfCommand({
      ...world(),
      command: `sleep 600 & echo $! > ${pidFile}; wait`,
      deadlineMs: 500,
    });
    await expect(hanging).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("500 ms") });
    const pid = Number(await readFile(pidFile, "utf8"));
    await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
  });
});
