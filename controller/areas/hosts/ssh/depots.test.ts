import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { spreadScript } from "./depots.ts";

let root: string;
const at = (...names: string[]): string => join(root, ...names);
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "odp-spread-"));
  for (const folder of ["depot/bin", "remote/bin", "secret"]) mkdirSync(at(folder), { recursive: true });
  writeFileSync(at("depot/bin/check.sh"), "new");
  chmodSync(at("depot/bin/check.sh"), 0o755);
  writeFileSync(at("secret/shadow"), "secret");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const spread = (): void =>
  void execFileSync("/bin/sh", ["-c", spreadScript({ folder: at("depot"), remotePath: at("remote") })], {
    stdio: "pipe",
  });

describe("files of a depot over SSH", () => {
  it("come into the remote path whole, with their modes, and nothing else stays there", () => {
    writeFileSync(at("remote/bin/check.sh"), "old");
    writeFileSync(at("depot/a file'\"$"), "odd");
    spread();
    expect(readFileSync(at("remote/bin/check.sh"), "utf8")).toBe("new");
    expect(statSync(at("remote/bin/check.sh")).mode & 0o777).toBe(0o755);
    expect(readdirSync(at("remote")).sort()).toEqual(["a file'\"$", "bin"]);
    expect(readdirSync(at("remote/bin"))).toEqual(["check.sh"]);
  });

  it("are not written through links that the owner of the folder planted", () => {
    for (const name of ["check.sh", "check.sh.odp-new", ".check.sh.odp-new"])
      symlinkSync(at("secret/shadow"), at("remote/bin", name));
    spread();
    expect(readFileSync(at("secret/shadow"), "utf8")).toBe("secret");
    expect(readFileSync(at("remote/bin/check.sh"), "utf8")).toBe("new");
    expect(statSync(at("remote/bin/check.sh")).isFile()).toBe(true);
  });

  it("do not leave the remote path by a folder that is a link", () => {
    rmSync(at("remote/bin"), { recursive: true });
    symlinkSync(at("secret"), at("remote/bin"));
    expect(spread).toThrow(/leads outside/);
    expect(readdirSync(at("secret"))).toEqual(["shadow"]);
  });
});
