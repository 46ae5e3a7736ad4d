import { truncateSync } from "node:fs";
import { appendFile, rename, rm } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import {
  LOG_FINAL_MS,
  LOG_HEAD_BYTES,
  LOG_HOLE_LOOK_BYTES,
  LOG_LAST_LINE_MS,
  LOG_READ_BYTES,
  RECORD_MAX_BYTES,
} from "../../../common/limits.ts";
import { LogLooks } from "../../../test/helpers/hosts/log-looks.ts";

const KIB = 1_024;

describe("a writer that goes on where it was when its file was cut off leaves a hole", () => {
  test.each([100, 10 * KIB, RECORD_MAX_BYTES + 1, 3 * LOG_READ_BYTES + 7])(
    "of %i bytes: the line behind it is delivered whole, and nothing of the hole",
    async (bytes) => {
      await using log = await LogLooks.begin({ flags: "w" });
      await log.writer.write(`${"x".repeat(bytes - 1)}\n`);
      await log.looks(2);
      const before = (await log.lines()).length;
      truncateSync(log.log);
      await log.looks();
      await log.writer.write("behind the hole\nand one more\n");
      await log.looks(2);
      expect((await log.lines()).slice(before)).toEqual(["behind the hole", "and one more"]);
      expect((await log.records()).at(-1)?.offset).toBe(bytes);
    },
  );

  test("of more than one look reads over: several looks find its end", async () => {
    await using log = await LogLooks.begin({ flags: "w" });
    await log.writer.truncate(3 * LOG_HOLE_LOOK_BYTES);
    await log.writer.write("behind the hole\n", 3 * LOG_HOLE_LOOK_BYTES);
    for (let looks = 0; looks < 3; looks++) {
      await log.look();
      expect(await log.lines()).toEqual([]);
    }
    await log.look();
    expect(await log.lines()).toEqual(["behind the hole"]);
  });

  test("and the file is removed before its end was found: the line behind it is delivered", async () => {
    await using log = await LogLooks.begin({ flags: "w" });
    await log.writer.truncate(3 * LOG_HOLE_LOOK_BYTES);
    await log.writer.write("behind the hole\n", 3 * LOG_HOLE_LOOK_BYTES);
    await log.look();
    await rm(log.log);
    await log.look();
    expect(await log.lines()).toEqual(["behind the hole"]);
    expect(await log.gapCounts()).toEqual([0]);
  });

  test("that no look saw empty: the same", async () => {
    await using log = await LogLooks.begin({ flags: "w" });
    await log.writer.write("first\n");
    await log.look();
    truncateSync(log.log);
    await log.writer.write("second\n");
    await log.looks();
    await log.writer.write("third\n");
    await log.looks(2);
    expect(await log.lines()).toEqual(["first", "second", "third"]);
  });

  test("and the agent begins again: no line twice", async () => {
    await using log = await LogLooks.begin({ flags: "w" });
    await log.writer.write("first\n");
    await log.look();
    truncateSync(log.log);
    await log.looks();
    await log.writer.write("second\n");
    await log.look();
    await log.restart();
    await log.writer.write("third\n");
    await log.looks(2);
    expect(await log.lines()).toEqual(["first", "second", "third"]);
  });
});

test("a hole between two lines is left out, however long", async () => {
  await using log = await LogLooks.begin();
  for (const bytes of [1, 5 * KIB, 2 * RECORD_MAX_BYTES]) {
    await log.writer.appendFile(Buffer.concat([Buffer.alloc(bytes), Buffer.from(`behind ${bytes}\n`)]));
  }
  await log.look();
  expect(await log.lines()).toEqual(["behind 1", "behind 5120", `behind ${2 * RECORD_MAX_BYTES}`]);
});

test("room that a writer reserved behind its lines is none, and what it writes there later is", async () => {
  await using log = await LogLooks.begin({ flags: "w" });
  const first = "x".repeat(LOG_HEAD_BYTES);
  await log.writer.write(`${first}\nbegun`);
  await log.writer.truncate(2 * RECORD_MAX_BYTES);
  await log.look();
  await log.silence(LOG_LAST_LINE_MS);
  expect(await log.lines()).toEqual([first]);
  await log.writer.write(" and ended\n");
  await log.looks(2);
  expect(await log.lines()).toEqual([first, "begun and ended"]);
});

test("room that was looked through is looked through again when the file grew", async () => {
  await using log = await LogLooks.begin({ flags: "w" });
  await log.writer.truncate(5 * KIB);
  await log.look();
  await log.writer.write("within\n", KIB);
  await log.writer.write("behind\n", 5 * KIB);
  await log.looks(2);
  expect(await log.lines()).toEqual(["within", "behind"]);
});

describe("the last line without its end", () => {
  test("is delivered after a silence, and never again", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("whole\nlast");
    await log.look();
    await log.silence(LOG_LAST_LINE_MS - 1);
    expect(await log.lines()).toEqual(["whole"]);
    await log.silence(1);
    await log.silence(LOG_LAST_LINE_MS);
    expect(await log.lines()).toEqual(["whole", "last"]);
    await log.writer.appendFile("\nnext\n");
    await log.restart();
    await log.look();
    expect(await log.lines()).toEqual(["whole", "last", "next"]);
  });

  test("is whole when it is written on before", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("be");
    await log.look();
    await log.silence(LOG_LAST_LINE_MS - 1);
    await log.writer.appendFile("gun");
    await log.read();
    await log.silence(LOG_LAST_LINE_MS - 1);
    await log.writer.appendFile(" and ended\n");
    await log.read();
    await log.silence(LOG_LAST_LINE_MS);
    expect(await log.lines()).toEqual(["begun and ended"]);
  });

  test("of a file whose name went to another one comes sooner", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("last");
    await log.look();
    await rename(log.log, `${log.log}.1`);
    await appendFile(log.log, "next\n");
    await log.looks(2);
    await log.silence(LOG_FINAL_MS);
    expect(await log.lines()).toEqual(["next", "last"]);
  });
});

describe("a line that is too long", () => {
  test("is cut at a whole character and marked; the next one is whole", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(`a${"€".repeat(RECORD_MAX_BYTES / 3 + 10)}\nnext\n`);
    await log.look();
    const [records] = await log.records();
    expect(records?.cut).toEqual([0]);
    expect(records?.records[0]?.toString()).toBe(`a${"€".repeat(Math.floor((RECORD_MAX_BYTES - 1) / 3))}`);
    expect((await log.lines()).at(-1)).toBe("next");
  });
});

describe("a log in an encoding that its policy names", () => {
  const TEXTS = ["Straße, 100 €", "naïve", "plain"];
  const FILES: Readonly<Record<string, (text: string) => Buffer>> = {
    "utf-16le": (text) => Buffer.from(text, "utf16le"),
    "utf-16be": (text) => Buffer.from(text, "utf16le").swap16(),
    "windows-1252": (text) => Buffer.from(text.replace("€", "\u0080"), "latin1"),
    "utf-8": (text) => Buffer.from(text),
  };

  test.each(Object.entries(FILES))(
    "%s: each line is its text, wherever it is interrupted",
    async (encoding, bytesOf) => {
      await using log = await LogLooks.begin({ attrs: { encoding } });
      const bytes = bytesOf(TEXTS.map((text) => `${text}\r\n`).join(""));
      for (const byte of bytes) {
        await log.writer.appendFile(Buffer.of(byte));
        if (byte % 3 === 0) await log.look();
      }
      await log.look();
      expect(await log.lines()).toEqual(TEXTS);
      expect((await log.records()).flatMap(({ malformed }) => malformed)).toEqual([]);
    },
  );

  test("characters whose second byte is a line feed end no line, and places are bytes of the file", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "utf-16le" } });
    await log.writer.appendFile(Buffer.from("\ufeffa\u0a0ab\u0a00c\nd\n", "utf16le"));
    await log.look();
    await log.writer.appendFile(Buffer.from("e\n", "utf16le"));
    await log.look();
    expect(await log.lines()).toEqual(["a\u0a0ab\u0a00c", "d", "e"]);
    expect((await log.records()).map(({ offset }) => offset)).toEqual([0, 18]);
  });

  test("of two bytes to the character: GBK", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "gbk" } });
    await log.writer.appendFile(Buffer.from("d6d0cec40a", "hex"));
    await log.look();
    expect(await log.lines()).toEqual(["中文"]);
  });

  test("that does not exist, as a version before has stored it: it is read as UTF-8, and a warning names it", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "klingon" } });
    await log.writer.appendFile("größer\n");
    await log.look();
    expect(await log.lines()).toEqual(["größer"]);
    expect(log.logged).toContainEqual(expect.objectContaining({ level: "warn", policy: "p", encoding: "klingon" }));
  });

  test("a byte order mark is left out at the beginning of the file only", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "utf-16le" } });
    await log.writer.appendFile(Buffer.from("\ufefffirst\n\ufeffsecond\n", "utf16le"));
    await log.look();
    expect(await log.lines()).toEqual(["first", "\ufeffsecond"]);
  });

  test("a line that is too long only as UTF-8 is cut there and marked", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "gbk" } });
    await log.writer.appendFile(Buffer.from(`${"d6d0".repeat(RECORD_MAX_BYTES / 2 - 1)}0a`, "hex"));
    await log.look();
    expect((await log.records()).map(({ cut }) => cut)).toEqual([[0]]);
    expect(await log.lines()).toEqual(["中".repeat(Math.floor(RECORD_MAX_BYTES / 3))]);
  });

  test("a delimiter that is tried on each line is found in it", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "utf-16be" }, delimiter: "^\\d" });
    const text = "1 first\n  more\n2 second\n3 third\n";
    await log.writer.appendFile(Buffer.from(text, "utf16le").swap16());
    await log.look();
    expect(await log.lines()).toEqual(["1 first\n  more", "2 second"]);
  });

  test("a hole in it is left out", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "utf-16be" }, flags: "w" });
    const bytesOf = (text: string) => Buffer.from(text, "utf16le").swap16();
    await log.writer.write(bytesOf("first\n"));
    await log.look();
    truncateSync(log.log);
    await log.looks();
    await log.writer.write(bytesOf("second\n"));
    await log.looks(2);
    expect(await log.lines()).toEqual(["first", "second"]);
  });

  test("bytes that are none of its characters are marked", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "gbk" } });
    await log.writer.appendFile(Buffer.from("610ad6ff620a", "hex"));
    await log.look();
    const [records] = await log.records();
    expect(records).toMatchObject({ malformed: [1], raw: Buffer.from("d6ff62", "hex"), rawLengths: [3] });
  });
});
