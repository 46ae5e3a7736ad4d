import { renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LogAgent } from "../../../../test/helpers/hosts/log-agent.ts";

const DEADLINE_MS = 20_000;
const HOME = "current.log";

let folder: string;
let logs: string;
let agent: LogAgent;
let agents: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-links-"));
  logs = join(folder, "logs");
  agents = 0;
  await mkdir(logs);
});

afterEach(async () => {
  await agent.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("a link to files of unrelated names", () => {
  beforeEach(async () => {
    write("run-7", "seven");
    link("run-7");
    await start();
    await hasLines("seven");
  });

  it("switched twice while no agent looks: what may be lost is a gap, also when its file is gone", async () => {
    await kill();
    write("run-7", "seven again");
    write("run-8", "eight");
    link("run-8");
    rmSync(join(logs, "run-8"));
    write("run-9", "nine");
    link("run-9");
    await start();
    await hasLines("seven again", "nine");
    await hasGaps(1);
  });

  it("switched there and back while no agent looks: a gap", async () => {
    await kill();
    write("run-8", "eight");
    link("run-8");
    link("run-7");
    write("run-7", "seven again");
    await start();
    await hasLines("seven again");
    await hasGaps(1);
  });

  it("switched there and back between two looks: a gap", async () => {
    write("run-8", "eight");
    link("run-8");
    link("run-7");
    await hasGaps(1);
  });

  it("switched twice between two looks: a gap", async () => {
    write("run-8", "eight");
    link("run-8");
    write("run-9", "nine");
    link("run-9");
    await hasLines("nine");
    await hasGaps(1);
  });

  it("switched once at a time: every line and no gap", async () => {
    for (const name of ["run-8", "run-9", "run-10"]) {
      write(name, name);
      link(name);
      await hasLines(name);
    }
    await restart();
    write("run-10", "more");
    await hasLines("more");
    await hasGaps(0);
  });

  it("renewed without a switch: no gap", async () => {
    link("run-7");
    write("run-7", "seven again");
    await hasLines("seven again");
    link("run-7");
    write("run-7", "and again");
    await hasLines("and again");
    await hasGaps(0);
  });

  it("from what was empty at the last look: its lines", async () => {
    writeFileSync(join(logs, "run-8"), "");
    link("run-8");
    await agent.follows(2);
    // Two rounds of reading: with the second, what was found by then is open.
    for (const text of ["one", "two"]) {
      write("other.log", text);
      await hasLines(text);
    }
    write("run-8", "eight");
    write("run-9", "nine");
    link("run-9");
    await hasLines("eight", "nine");
    await hasGaps(0);
  });

  it("from what was empty when the agent ended: a gap", async () => {
    writeFileSync(join(logs, "run-8"), "");
    link("run-8");
    await agent.follows(2);
    await kill();
    write("run-8", "eight");
    write("run-9", "nine");
    link("run-9");
    await start();
    await hasLines("nine");
    await hasGaps(1);
  });

  it("into another folder: a gap", async () => {
    await kill();
    await mkdir(join(folder, "elsewhere"));
    for (const name of ["a", "b"]) {
      write(`../elsewhere/${name}`, name);
      link(`../elsewhere/${name}`);
    }
    await start();
    await hasLines("b");
    await hasGaps(1);
  });

  it("a link that is switched in another folder shows no event: a gap", async () => {
    symlinkSync(logs, join(folder, "aside"));
    symlinkSync("run-7", join(logs, "latest"));
    link("../aside/latest");
    await restart();
    write("run-8", "eight");
    write("run-9", "nine");
    replace("latest", "run-8");
    replace("latest", "run-9");
    await hasLines("nine");
    await hasGaps(1);
  });
});

it("targets that match for themselves are followed as themselves: no gap", async () => {
  write("run-7.log", "seven");
  link("run-7.log");
  await start("\\.log$");
  await hasLines("seven");
  await kill();
  for (const name of ["run-8.log", "run-9.log"]) {
    write(name, name);
    link(name);
  }
  await start("\\.log$");
  await hasLines("run-8.log", "run-9.log");
  await hasGaps(0);
});

describe("a log that is renamed to names that tell nothing", () => {
  beforeEach(async () => {
    write(HOME, "first");
    await start();
    await hasLines("first");
  });

  it("twice while no agent looks: a gap", async () => {
    await kill();
    aside("monday", "second");
    aside("tuesday", "third");
    await start();
    await hasLines("third");
    await hasGaps(1);
  });

  it("twice between two looks: a gap", async () => {
    aside("monday", "second");
    aside("tuesday", "third");
    await hasLines("third");
    await hasGaps(1);
  });

  it("once at a time: every line and no gap", async () => {
    for (const name of ["monday", "tuesday", "wednesday"]) {
      aside(name, `after ${name}`);
      await hasLines(`after ${name}`);
    }
    await hasGaps(0);
  });

  it("replaced twice between two looks: a gap", async () => {
    for (const text of ["second", "third"]) {
      write("new", text);
      renameSync(join(logs, "new"), join(logs, HOME));
      rmSync(join(logs, HOME));
    }
    write(HOME, "fourth");
    await hasLines("fourth");
    await hasGaps(1);
  });

  it("deleted and begun anew, once at a time: no gap", async () => {
    for (const text of ["second", "third"]) {
      rmSync(join(logs, HOME));
      write(HOME, text);
      await hasLines(text);
    }
    await hasGaps(0);
  });
});

/** In one turn of the event loop, so that no look comes between. */
function write(name: string, line: string): void {
  writeFileSync(join(logs, name), `${line}\n`, { flag: "a" });
}

function link(target: string): void {
  replace(HOME, target);
}

function replace(name: string, target: string): void {
  symlinkSync(target, join(logs, `${name}.new`));
  renameSync(join(logs, `${name}.new`), join(logs, name));
}

function aside(name: string, next: string): void {
  renameSync(join(logs, HOME), join(logs, name));
  write(HOME, next);
}

async function start(match = "^(current|other)\\.log$"): Promise<void> {
  const spec = { name: "p", kind: "log" as const, rule: "/r", dir: logs, match };
  agent = await LogAgent.start(folder, outbox(), { spec, log: () => undefined });
}

function outbox(): string {
  return join(folder, `outbox-${agents}`);
}

async function kill(): Promise<void> {
  agents++;
  await agent.kill(outbox());
}

async function restart(): Promise<void> {
  await kill();
  await start();
}

async function hasLines(...texts: string[]): Promise<void> {
  for (const end = performance.now() + DEADLINE_MS; ; await pause(5)) {
    const lines = await agent.lines();
    if (texts.every((text) => lines.filter((line) => line === text).length === 1)) return;
    if (performance.now() > end) throw new Error(`Not once: ${texts.join(", ")} in ${lines.join(", ")}`);
  }
}

/** A line written now is behind everything that the last look told. */
async function hasGaps(count: number): Promise<void> {
  await appendFile(join(logs, HOME), "the end\n");
  await hasLines("the end");
  const gaps = (await agent.gaps()).map(({ source, reason }) => ({ source, reason }));
  const expected = { source: join(logs, HOME), reason: "vanished" };
  expect(gaps).toEqual(Array.from({ length: count }, () => expected));
}
