import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSecretKey, secretBox } from "./index.ts";

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
    expect(() => box.open(rotated.seal("new", "c"), "c")).toThrow(/which the key file does not have/);
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
