import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ANCHOR_OF_HEADS, anchorLine } from "../../common/audit-anchor.ts";
import { AUDIT_BROKEN, AUDIT_NOT_ANCHORED, exportAudit, verifyAudit } from "./audit.ts";

const SOUND = {
  ...{ entries: 5, runs: 1, unkeyed: 0, uncovered: 0, beforeHeads: 0, anchors: 1 },
  ...{ problems: [], notes: ["No sealed head covers 2 entries."] },
};
const first = { kind: "missing", run: "r", sequence: 3, timeMs: 1, text: "Entries 3 to 3 of run r are missing." };

function asking(lines: readonly object[]) {
  const written: string[] = [];
  const notes: string[] = [];
  const asked: unknown[] = [];
  const client = {
    async *lines(id: string, { body }: { readonly body?: unknown }) {
      asked.push([id, body]);
      yield* await Promise.resolve(lines);
    },
  };
  const options = {
    client: client as never,
    signal: new AbortController().signal,
    tenant: "matrix",
    anchorFiles: [] as readonly string[],
    json: false,
    write: (text: string) => Promise.resolve(written.push(text) > 0),
    note: (text: string) => void notes.push(text),
  };
  return { options, written, notes, asked };
}

test("a sound trail ends with 0, a broken one with 2 and its first break, one that is not anchored with 3", async () => {
  const sound = asking([{ entries: 10_000 }, { report: SOUND }]);
  expect(await verifyAudit(sound.options)).toBe(0);
  expect(sound.notes).toEqual(["10000 entries"]);
  expect(sound.written.join("")).toMatch(/^The trail is sound\.\n.*\nNo sealed head covers 2 entries\.\n$/);
  const broken = asking([{ report: { ...SOUND, first, problems: [first.text, "Entry 9 of run r was changed."] } }]);
  expect(await verifyAudit(broken.options)).toBe(AUDIT_BROKEN);
  expect(broken.written.join("")).toMatch(/^THE TRAIL IS BROKEN \(missing\): Entries 3 to 3.*\n {2}also: Entry 9/);
  const loose = asking([{ report: { ...SOUND, anchorFault: "no space left" } }]);
  expect(await verifyAudit(loose.options)).toBe(AUDIT_NOT_ANCHORED);
});

test("anchors of heads are brought along as well", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-anchors-"));
  try {
    const file = join(folder, "anchors");
    const heads = { timeMs: 1_000, tenant: "matrix", run: ANCHOR_OF_HEADS, sequence: 4, hash: "k:1" };
    await writeFile(file, [{ ...heads, sequence: 3 }, heads].map(anchorLine).join(""));
    const { options, asked } = asking([{ report: SOUND }]);
    await verifyAudit({ ...options, anchorFiles: [file] });
    const line = '{"time":"1970-01-01T00:00:01.000Z","tenant":"matrix","heads":4,"hash":"k:1"}';
    expect(asked).toEqual([["postAuditVerify", { anchors: [line] }]]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an answer that breaks off, or ends in an error, is no sound trail", async () => {
  await expect(verifyAudit(asking([{ entries: 10_000 }]).options)).rejects.toThrow("broke off");
  const error = { code: "unavailable", message: "The store is away." };
  await expect(verifyAudit(asking([{ error }]).options)).rejects.toThrow("The store is away.");
  await expect(exportAudit(asking([{ sequence: 1 }]).options, {})).rejects.toThrow("broke off");
});

test("anchor files are brought along, the newest of each run of the tenant", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-anchors-"));
  try {
    const file = join(folder, "anchors");
    const anchor = { timeMs: 1_000, tenant: "matrix", run: "r", sequence: 1, hash: "k:1" };
    const newest = { ...anchor, sequence: 7 };
    await writeFile(file, [newest, anchor, { ...anchor, tenant: "second" }].map(anchorLine).join(""));
    const { options, asked } = asking([{ report: SOUND }]);
    await verifyAudit({ ...options, anchorFiles: [file] });
    expect(asked).toEqual([["postAuditVerify", { anchors: [anchorLine(newest).trimEnd()] }]]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an export writes a line for each entry and tells how many there were", async () => {
  const { options, written } = asking([{ sequence: 2 }, { sequence: 1 }, { end: { entries: 2 } }]);
  expect(await exportAudit(options, {})).toBe(2);
  expect(written).toEqual(['{"sequence":2}\n', '{"sequence":1}\n']);
});

test("an export whose reader has gone reads no more of the trail", async () => {
  const { options } = asking([{ sequence: 2 }, { sequence: 1 }]);
  expect(await exportAudit({ ...options, write: () => Promise.resolve(false) }, {})).toBe(0);
});
