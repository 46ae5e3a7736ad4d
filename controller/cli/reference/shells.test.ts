import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { SHELL_SCRIPTS } from "./scripts.ts";

/** Completion in real shells on a terminal, which `script` makes. The keys are those of a user: text, Tab and Enter. */

const PATIENCE = { timeout: 30_000 };
const PROMPT = "ready> ";

/** Answers of `odp __complete`, by the first word; other calls print their words. */
const PROGRAM = `#!/bin/sh
if [ "$1" != __complete ]; then for word in "$@"; do printf '[%s]' "$word"; done; echo; exit; fi
case "$3" in
  host) printf 'list\\tlist the hosts\\n' ;;
  job) echo backup@nightly ;;
  exec) printf 'tag:role/web\\thosts with this tag\\n' ;;
  policy) echo :files ;;
  fs) echo :folders ;;
esac
`;

interface Shell {
  readonly file: string;
  readonly start: string;
  readonly settings: string;
  readonly folder?: string;
}

/** How a user sets a shell up, in a folder that is the home. */
const SHELLS: Readonly<Record<string, Shell>> = {
  zsh: {
    file: "functions/_odp",
    start: ".zshrc",
    settings: `PS1='${PROMPT}'; fpath=("$HOME/functions" $fpath); autoload -Uz compinit; compinit -u -D`,
  },
  fish: {
    file: ".config/fish/completions/odp.fish",
    start: ".config/fish/config.fish",
    settings: `set -g fish_greeting; function fish_prompt; echo '${PROMPT}'; end`,
    // Without it, fish makes completions of manual pages here, in a process that outlives it.
    folder: ".local/share/fish/generated_completions",
  },
};

/** CI does not install them, which would take longer than all of these tests. The soak needs both. */
const tried = Object.keys(SHELLS).filter((name) => TIMES > 1 || existsSync(join("/usr/bin", name)));

test.each(tried)("%s completes commands, names, files and folders", async (name) => {
  const home = await mkdtemp(join(tmpdir(), "odp-shell-"));
  try {
    await install(name, home);
    await using terminal = await Terminal.open(name, home);
    for (const [typed, words] of [
      ["odp host li", "[host][list]"],
      ["odp job run ba", "[job][run][backup@nightly]"],
      ["odp exec ta", "[exec][tag:role/web]"],
      ["odp policy apply -f defi", "[policy][apply][-f][definitions.json]"],
      ["odp policy apply --file=defi", "[policy][apply][--file=definitions.json]"],
      ["odp fs sync de", "[fs][sync][depots"],
    ] as const)
      await terminal.type(`${typed}\t\r`, words);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

async function install(name: string, home: string): Promise<void> {
  const { file, start, settings, folder = "bin" }: Shell = SHELLS[name] ?? { file: "", start: "", settings: "" };
  await mkdir(join(home, file, ".."), { recursive: true });
  await writeFile(join(home, file), SHELL_SCRIPTS[name] ?? "");
  await writeFile(join(home, start), `${settings}\n`);
  for (const one of ["bin", folder]) await mkdir(join(home, one), { recursive: true });
  await mkdir(join(home, "depots"));
  await writeFile(join(home, "definitions.json"), "{}");
  await writeFile(join(home, "bin/odp"), PROGRAM);
  await chmod(join(home, "bin/odp"), 0o755);
}

class Terminal implements AsyncDisposable {
  readonly #script: ReturnType<typeof spawn>;
  #shown = "";

  private constructor(shell: string, home: string) {
    const env = { PATH: `${home}/bin:/usr/bin:/bin`, HOME: home, TERM: "dumb", LC_ALL: "C.UTF-8" };
    this.#script = spawn("script", ["-qfec", shell, "/dev/null"], {
      cwd: home,
      env,
      stdio: "pipe",
      timeout: PATIENCE.timeout * 2,
    });
    this.#script.stdout?.on("data", (data: Buffer) => (this.#shown += data.toString()));
  }

  static async open(shell: string, home: string): Promise<Terminal> {
    const terminal = new Terminal(shell, home);
    await expect.poll(() => terminal.#shown, PATIENCE).toContain(PROMPT);
    return terminal;
  }

  /** Types keys, and waits until this is shown, and the prompt behind it. */
  async type(keys: string, shown: string): Promise<void> {
    this.#shown = "";
    this.#script.stdin?.write(keys);
    await expect.poll(() => this.#shown.split(shown)[1], PATIENCE).toContain(PROMPT);
  }

  /** The shell ends by itself: one that is killed may still write into its home. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#script, "close");
    this.#script.stdin?.end("exit\r");
    await ended;
  }
}
