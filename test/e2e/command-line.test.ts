import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { FakeAuthority } from "../helpers/hosts/fake-authority.ts";
import packageJson from "../../package.json" with { type: "json" };

/** The npm package of the command line, installed as on another machine: without this checkout and without a network. */

const STEP_DEADLINE_MS = 120_000;

test("the package installs one program and its manual, and the program runs wherever it is copied", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-cli-"));
  try {
    const run = (program: string, args: readonly string[], cwd: string) =>
      promisify(execFile)(program, args, {
        cwd,
        timeout: STEP_DEADLINE_MS,
        env: { PATH: process.env["PATH"], HOME: folder },
      });
    const made = await run("npm", ["run", "--silent", "pack-cli", "--", join(folder, "made/package")], ".");
    const flags = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", join(folder, "installed")];
    await run("npm", ["install", "--global", ...flags, made.stdout.trim()], folder);
    const odp = join(folder, "installed/bin/odp");
    expect((await run(odp, ["--version"], folder)).stdout).toBe(`${packageJson.version}\n`);
    expect((await run(odp, ["completion", "bash"], folder)).stdout).toContain("complete -F _odp odp");
    await expect(run(odp, ["host", "list"], folder)).rejects.toMatchObject({
      code: 64,
      stderr: expect.stringContaining("odp login"),
    });
    const copied = join(folder, "modules");
    await mkdir(copied);
    await cp(join(folder, "installed/lib/node_modules/odp-cli/odp.js"), join(copied, "odp.js"));
    await writeFile(join(copied, "package.json"), '{"type":"module"}');
    expect((await run(join(copied, "odp.js"), ["host", "list", "--help"], folder)).stdout).toContain("odp host list");
    expect(await readdir(join(folder, "installed/lib/node_modules/odp-cli"))).toEqual([
      "LICENSE",
      "README.md",
      "odp.1",
      "odp.js",
      "package.json",
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("an address with TLS takes certificates of the authorities that NODE_EXTRA_CA_CERTS adds, and no others", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-cli-tls-"));
  const authority = await FakeAuthority.make();
  const server = createServer(await authority.serverPair(), (_request, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok","message":[{"host":"web-1"}]}'),
  );
  try {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const run = (env: NodeJS.ProcessEnv) =>
      promisify(execFile)(process.execPath, ["dist/odp.js", "host", "list", "-o", "name"], {
        env: { ODP_URL: url, ODP_TOKEN: "t", ODP_CONFIG_DIR: folder, ...env },
        timeout: STEP_DEADLINE_MS,
      });
    await expect(run({})).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("certificate") });
    const file = join(folder, "ca.pem");
    await writeFile(file, authority.pem);
    expect((await run({ NODE_EXTRA_CA_CERTS: file })).stdout).toBe("web-1\n");
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
});
