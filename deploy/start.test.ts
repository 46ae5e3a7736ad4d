import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };

const CONTROLLER = `
process.on("SIGTERM", () => { console.log("stops in order"); process.exit(0); });
console.log("runs");
setInterval(() => undefined, 1_000);
`;

test("npm start passes SIGTERM on to the controller, and ends with it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-start-"));
  let npm: ChildProcess | undefined;
  try {
    const scripts = { build: "true", start: packageJson.scripts.start };
    await writeFile(join(folder, "package.json"), JSON.stringify({ name: "odp-start", type: "module", scripts }));
    await mkdir(join(folder, "dist"));
    await writeFile(join(folder, "dist/controller.js"), CONTROLLER);
    npm = spawn("npm", ["start"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"], detached: true });
    let out = "";
    npm.stdout?.setEncoding("utf8").on("data", (text: string) => (out += text));
    await expect.poll(() => out, { timeout: 60_000 }).toContain("runs\n");
    npm.kill("SIGTERM");
    await once(npm, "close");
    expect(out).toContain("stops in order\n");
  } finally {
    endGroup(npm?.pid);
    await rm(folder, { recursive: true });
  }
});

/** Ends what a failure has left. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All have ended.
  }
}
