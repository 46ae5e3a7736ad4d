import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { allCommands } from "../commands/all.ts";
import { TestCommandLine } from "../../../test/helpers/programs/command-line.ts";
import { completionOf } from "./completion.ts";

const COMMANDS = await allCommands();

function words(line: string): readonly string[] {
  return completionOf(COMMANDS, line.split(" ")).words.map(({ word }) => word);
}

test("commands, options and choices are completed by what stands before", () => {
  expect(words("ho")).toEqual(["host", "hosts"]);
  expect(words("host ")).toEqual(["list", "show", "token", "set", "remove"]);
  expect(words("--context work host s")).toEqual(["show", "set"]);
  expect(words("host list --t")).toEqual(["--tag"]);
  expect(words("host list --o")).toEqual(["--output"]);
  expect(words("host list -o ")).toEqual(["table", "wide", "json", "yaml", "csv", "name"]);
  expect(words("host list --output=y")).toEqual(["--output=yaml"]);
  expect([words("host show web-1 "), words("key ro"), words("key secret.key ro")]).toEqual([[], ["rotate"], []]);
});

test("names and files are completed where an argument or option takes them", () => {
  const kind = (line: string) => completionOf(COMMANDS, line.split(" ")).kind;
  expect([kind("host show "), kind("job run b"), kind("policy apply -f "), kind("fs sync ")]).toEqual([
    "hosts",
    "jobs",
    "files",
    "folders",
  ]);
  expect([kind("depot upload check@1.0.0 a.tar b"), kind("host list "), kind("login x --name ")]).toEqual([
    "files",
    undefined,
    undefined,
  ]);
});

test("the command that shells call never fails, and tells contexts without a controller", async () => {
  await using line = await TestCommandLine.open();
  await line.contexts.add("work", { url: "http://127.0.0.1:9", user: "acme.ana", session: "s" });
  const complete = (...given: string[]) => line.run(["__complete", "--", ...given]);
  expect(await complete("context", "use", "")).toEqual({ out: "work\n", err: "", code: 0 });
  expect((await complete("host", "re")).out).toBe("remove\tremove a host; its agent can no longer connect\n");
  expect(await complete("host", "show", "")).toEqual({ out: "", err: "", code: 0 });
  expect((await complete("policy", "apply", "-f", "")).out).toBe(":files\n");
  expect((await complete("__")).out).toBe("");
});

test("bash completes by the script, also behind a sign at which it splits words", async () => {
  await using line = await TestCommandLine.open();
  const folder = await mkdtemp(join(tmpdir(), "odp-bash-"));
  try {
    await writeFile(join(folder, "script"), (await line.run(["completion", "bash"])).out);
    const answers = 'if [ "$3" = job ]; then echo backup@nightly; else printf "list\\tlist the hosts\\n:files\\n"; fi';
    await writeFile(join(folder, "odp"), `#!/bin/sh\n${answers}\n`);
    await chmod(join(folder, "odp"), 0o755);
    await writeFile(join(folder, "lists"), "");
    const completed = async (typed: string) => {
      const script = `source ./script; COMP_LINE=${JSON.stringify(typed)}; COMP_POINT=\${#COMP_LINE}; compopt() { :; }; _odp; printf '%s|' "\${COMPREPLY[@]}"`;
      const env = { PATH: `${folder}:${process.env["PATH"]}` };
      return (await promisify(execFile)("bash", ["-c", script], { cwd: folder, env })).stdout;
    };
    expect(await completed("odp host li")).toBe("list|lists|");
    expect(await completed("odp job run backup@ni")).toBe("nightly|");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a script is written for the shells that have one", async () => {
  await using line = await TestCommandLine.open();
  for (const shell of ["bash", "zsh", "fish"])
    expect((await line.run(["completion", shell])).out).toContain(`odp completion ${shell}`);
  expect(await line.run(["completion", "tcsh"])).toMatchObject({
    code: 64,
    err: "odp: Shells are bash, zsh, fish, not tcsh.\n",
  });
});
