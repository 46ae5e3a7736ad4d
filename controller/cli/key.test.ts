import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSecretKey } from "../secrets/index.ts";
import { makeKeyFile } from "./key.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-key-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("a key file that is made is the one that a cluster's controllers require, and only its owner reads it", async () => {
  const [file, other] = [join(folder, "secret.key"), join(folder, "other.key")];
  await makeKeyFile(file);
  await makeKeyFile(other);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const box = await openSecretKey({ file, create: false });
  expect(box.open(box.seal("s3cret", "c"), "c")).toBe("s3cret");
  expect(box.keyId).not.toBe((await openSecretKey({ file: other, create: false })).keyId);
});

test("a key file that is there stays as it is", async () => {
  const file = join(folder, "kept.key");
  await makeKeyFile(file);
  const before = await readFile(file, "utf8");
  await expect(makeKeyFile(file)).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining(file) });
  expect(await readFile(file, "utf8")).toBe(before);
});

test("the start that misses it says how it is made", async () => {
  const file = join(folder, "missing.key");
  await expect(openSecretKey({ file, create: false })).rejects.toThrow(`odp.js key ${file}`);
});
