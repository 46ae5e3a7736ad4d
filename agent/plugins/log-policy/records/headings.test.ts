import { truncateSync } from "node:fs";
import { appendFile, copyFile, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { policyHeading } from "../../../../common/agent/policy-heading.ts";
import { LOG_HEADING_MAX_BYTES, LOG_HEADING_SEARCH_MAX_BYTES, LOG_READ_BYTES } from "../../../../common/limits.ts";
import { LogLooks } from "../../../../test/helpers/hosts/log-looks.ts";
import { withHeadings } from "./headings.ts";

const SHORT = "#Fields: date time cs-method cs-uri-stem sc-status";
const LONG = `${SHORT} cs(User-Agent)`;
const IIS = ["#Software: Microsoft Internet Information Services 10.0", "#Version: 1.0", "#Date: 2026-11-23 10:15:02"];

function w3c(fields: string, ...rows: readonly string[]): string {
  return [...IIS, fields, ...rows].map((line) => `${line}\r\n`).join("");
}

function row(path: string): string {
  return `2026-11-23 10:15:02 GET ${path} 200`;
}

/** Rows with the heading line that came with them; other lines are left out. */
async function headed(log: LogLooks): Promise<readonly (readonly [string, string | undefined])[]> {
  const entries = await log.records();
  return entries
    .flatMap(({ records, heading }) => records.map((record) => [record.toString(), heading] as const))
    .filter(([text]) => !text.startsWith("#"));
}

describe("the records of a W3C log have the line #Fields: that stands before them", () => {
  test("in every batch, also behind another one and after a restart", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(w3c(SHORT, row("/a")));
    await log.look();
    await log.writer.appendFile(`${row("/b")}\r\n`);
    await log.look();
    await log.restart();
    await log.writer.appendFile(`${row("/c")}\r\n${w3c(LONG, `${row("/d")} curl`)}`);
    await log.look();
    await log.restart();
    await log.writer.appendFile(`${row("/e")} curl\r\n`);
    await log.look();
    expect(await headed(log)).toEqual([
      [row("/a"), SHORT],
      [row("/b"), SHORT],
      [row("/c"), SHORT],
      [`${row("/d")} curl`, LONG],
      [`${row("/e")} curl`, LONG],
    ]);
  });

  test("after a rename: the rest of the old file keeps its own", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(w3c(SHORT, row("/a")));
    await log.look();
    await log.writer.appendFile(`${row("/b")}\r\n`);
    await log.writer.close();
    await rename(log.log, `${log.log}.1`);
    await writeFile(log.log, w3c(LONG, `${row("/c")} curl`));
    await log.reopen();
    await log.restart();
    await log.looks();
    expect(await headed(log)).toEqual([
      [row("/a"), SHORT],
      [row("/b"), SHORT],
      [`${row("/c")} curl`, LONG],
    ]);
  });

  test.each([false, true])("after a copy and a cut (packed at once: %s): the same", async (isPacked) => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(w3c(SHORT, row("/a")));
    await log.look();
    await log.writer.appendFile(`${row("/b")}\r\n`);
    await copyFile(log.log, `${log.log}.1`);
    truncateSync(log.log);
    if (isPacked) await pack(`${log.log}.1`);
    await log.writer.appendFile(w3c(LONG, `${row("/c")} curl`));
    await log.looks(8);
    expect(await headed(log)).toEqual([
      [row("/a"), SHORT],
      [row("/b"), SHORT],
      [`${row("/c")} curl`, LONG],
    ]);
  });

  test("of a file that a former version of the agent had begun, the line before the place read is found again", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(w3c(SHORT, row("/a".repeat(LOG_READ_BYTES / 8)), row("/a")));
    await log.writer.appendFile(w3c(LONG, `${row("/b")} curl`));
    await log.look();
    await log.withoutHeadings();
    await log.writer.appendFile(`${row("/c")} curl\r\n`);
    await log.look();
    expect((await headed(log)).at(-1)).toEqual([`${row("/c")} curl`, LONG]);
  });

  test.each([
    ["within", 1_000],
    ["beyond", 10],
  ])("and of a file whose heading line was %s what the marks of a policy hold", async (_, headingsMaxBytes) => {
    await using log = await LogLooks.begin({ bounds: { headingsMaxBytes } });
    await log.writer.appendFile(w3c(SHORT, row("/a")));
    await log.look();
    await log.writer.appendFile(`${row("/b")}\r\n`);
    await log.look();
    const isMarked = log.marks().some(([, value]) => value.includes(SHORT));
    expect(isMarked).toBe(headingsMaxBytes > SHORT.length);
    await log.restart();
    await log.writer.appendFile(`${row("/c")}\r\n`);
    await log.look();
    expect(await headed(log)).toEqual(["/a", "/b", "/c"].map((path) => [row(path), SHORT]));
  });

  test("and is not searched without end", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(w3c(SHORT));
    await log.writer.truncate(LOG_HEADING_SEARCH_MAX_BYTES);
    await log.writer.appendFile(`\n${row("/a")}\n`);
    await log.looks(2);
    await log.withoutHeadings();
    await log.writer.appendFile(`${row("/b")}\n${SHORT}\n${row("/c")}\n`);
    await log.looks(2);
    expect((await headed(log)).slice(-3)).toEqual([
      [row("/a"), SHORT],
      [row("/b"), undefined],
      [row("/c"), SHORT],
    ]);
  });
});

test("records of several files in one batch have the line of their own file", async () => {
  await using log = await LogLooks.begin({ match: "\\.log$" });
  await writeFile(log.log.replace("app", "b"), w3c(LONG, `${row("/b")} curl`));
  await log.writer.appendFile(w3c(SHORT, row("/a")));
  await log.look();
  await appendFile(log.log.replace("app", "b"), `${row("/c")} curl\n`);
  await log.writer.appendFile(`${row("/d")}\n`);
  await log.look();
  expect(Object.fromEntries(await headed(log))).toEqual({
    [row("/a")]: SHORT,
    [`${row("/b")} curl`]: LONG,
    [`${row("/c")} curl`]: LONG,
    [row("/d")]: SHORT,
  });
});

describe("the first line of a CSV file comes with all of its records where the policy says so", () => {
  test("also in another encoding, behind blank lines, and after a restart and a rotation", async () => {
    await using log = await LogLooks.begin({ attrs: { heading: "first", encoding: "utf-16le" } });
    const write = (text: string) => log.writer.appendFile(Buffer.from(text, "utf16le"));
    await write("\r\n");
    await log.look();
    await write("Straße;Netto\r\nA;1\r\n");
    await log.look();
    await log.restart();
    await write("B;2\r\n");
    await log.look();
    await log.writer.close();
    await rename(log.log, `${log.log}.1`);
    await log.reopen();
    await write("Netto;Straße\r\n3;C\r\n");
    await log.looks(2);
    expect((await headed(log)).filter(([text]) => !text.includes("Netto"))).toEqual([
      ["A;1", "Straße;Netto"],
      ["B;2", "Straße;Netto"],
      ["3;C", "Netto;Straße"],
    ]);
  });

  test("a policy that says so later finds it in files that were begun", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("client,amount\na,1\n");
    await log.look();
    await log.restart({ attrs: { heading: "first" } });
    await log.writer.appendFile("b,2\n");
    await log.look();
    expect(await headed(log)).toEqual([
      ["client,amount", undefined],
      ["a,1", undefined],
      ["b,2", "client,amount"],
    ]);
  });
});

test("heading lines that an earlier version stored and nothing is known by leave the policy at work, with a warning", async () => {
  await using log = await LogLooks.begin({ attrs: { heading: "second" } });
  await log.writer.appendFile(w3c(SHORT, row("/a")));
  await log.look();
  expect(await headed(log)).toEqual([[row("/a"), SHORT]]);
  expect(log.logged).toContainEqual(expect.objectContaining({ level: "warn", policy: "p", heading: "second" }));
});

describe("the first line, looked for in what was read,", () => {
  test("is not the mark of the encoding", async () => {
    await using log = await LogLooks.begin({ attrs: { heading: "first", encoding: "utf-16le" } });
    const write = (text: string) => log.writer.appendFile(Buffer.from(text, "utf16le"));
    await write("\ufeff\r\nname;n\r\nA;1\r\n");
    await log.look();
    await log.withoutHeadings();
    await write("B;2\r\n");
    await log.look();
    expect((await headed(log)).at(-1)).toEqual(["B;2", "name;n"]);
  });

  test("is not known where the file begins with a hole", async () => {
    await using log = await LogLooks.begin({ attrs: { heading: "first" } });
    await log.writer.truncate(100);
    await log.writer.appendFile("a");
    await log.look();
    await log.writer.appendFile(",1\nb,2\n");
    await log.look();
    expect(await headed(log)).toEqual([
      ["a,1", undefined],
      ["b,2", undefined],
    ]);
  });
});

test.each([false, true])("every line may be a heading line, and is an entry (packed: %s)", async (isPacked) => {
  await using log = await LogLooks.begin({ attrs: { heading: "^." }, rule: `/matrix/rules/${"a".repeat(1_500)}` });
  await log.writer.appendFile("first\n");
  await log.looks(2);
  const lines = Array.from({ length: 12_000 }, (_, at) => String(at % 10));
  const text = lines.map((line) => `${line}\n`).join("");
  if (isPacked) await writeFile(`${log.log}.1.gz`, gzipSync(text));
  else await log.writer.appendFile(text);
  await log.looks(2);
  expect(await log.lines()).toEqual(["first", ...lines]);
});

describe("a heading line", () => {
  const record = (text: string) => ({ bytes: Buffer.from(text), offset: 0, cut: false });
  const sent = (lines: readonly string[], attrs: Record<string, string>) =>
    withHeadings(lines.map(record), policyHeading({ attrs })).records.map(({ heading }) => heading);

  test("may be any line that an expression of the policy matches", () => {
    expect(sent(["# made by x", "time,a", "1,2", "time,b", "3,4"], { heading: "^time," })).toEqual([
      undefined,
      "time,a",
      "time,a",
      "time,b",
      "time,b",
    ]);
  });

  test("may have a mark of UTF-8 before it, which the expression need not have", () => {
    const line = "\ufefftime,a";
    for (const heading of ["^time,", "^\ufeff?time,", "^\ufefftime,"])
      expect(sent([line, "1,2"], { heading })).toEqual([line, line]);
  });

  test("that is too long is not sent, and none before it either", () => {
    const longest = `#Fields: ${"x".repeat(LOG_HEADING_MAX_BYTES - 9)}`;
    expect(sent([longest, "a", `${longest}x`, "b"], {})).toEqual([longest, longest, undefined, undefined]);
    expect(sent([`${longest}x`, "a"], { heading: "first" })).toEqual([undefined, undefined]);
  });

  test("is the first line of a record of several", () => {
    expect(sent(["#Fields: a b\r\n#Date: x", "1 2"], {})).toEqual(["#Fields: a b", "#Fields: a b"]);
  });
});

async function pack(path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  await writeFile(`${path}.gz`, gzipSync(await readFile(path)));
  await utimes(`${path}.gz`, atime, mtime);
  await rm(path);
}
