import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as limits from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import { runPage } from "../../../test/mql/script.ts";
import type { Principal } from "../permissions/index.ts";

const PAGE = "deploy/docs/spreadsheets.md";

test("the examples of the page about tables of one's own answer what stands below them", async () => {
  await using engine = await openTestEngine();
  const transfer = new TestTransfer(engine);
  const path = join(engine.dir, "example.csv");
  /** The first line contains the parameters of the call, the other lines the file. */
  const imported = async (who: Principal, block: string): Promise<readonly Row[]> => {
    const [query = "", ...lines] = block.split("\n");
    const { columns, plan, class: of = "", ...others } = Object.fromEntries(new URLSearchParams(query));
    await writeFile(path, `${lines.join("\n")}\n`);
    const given = columns === undefined ? {} : { columns: JSON.parse(columns) as Record<string, string> };
    const request = { ...others, ...given, class: of, plan: plan === "true" };
    const report = await transfer.imports.sheet(who, { path, filename: "example.csv" }, request);
    return [JSON.parse(JSON.stringify({ ...report, id: undefined, warnings: undefined })) as Row];
  };
  await runPage(PAGE, { mql: (...asked) => transfer.query.rows(...asked), csv: imported });
  await transfer.close();
});

test("the examples of the page about history move it as they say", async () => {
  await using engine = await openTestEngine();
  const transfer = new TestTransfer(engine);
  let script = "";
  const exported = async (who: Principal, block: string): Promise<readonly Row[]> => {
    const { class: of = "", times } = Object.fromEntries(new URLSearchParams(block));
    script = await transfer.script(who, { class: of, times: times === "true" });
    return script
      .trimEnd()
      .split("\n")
      .map((line) => ({ line }));
  };
  /**
   * The first line contains the parameters of the call, the other lines the file. Without other lines, the last export
   * is the file.
   */
  const imported = async (who: Principal, block: string): Promise<readonly Row[]> => {
    const [query = "", ...lines] = block.split("\n");
    const { root, times } = Object.fromEntries(new URLSearchParams(query));
    const file = lines.length === 0 ? script : lines.join("\n");
    // Warnings are beside the message.
    const report = await transfer.take(who, file, { root, times: times === "true" });
    return [JSON.parse(JSON.stringify({ ...report, id: undefined, warnings: undefined })) as Row];
  };
  const asks = { mql: (...asked: Parameters<typeof transfer.query.rows>) => transfer.query.rows(...asked) };
  await runPage("deploy/docs/exports.md", { ...asks, export: exported, import: imported });
  await transfer.close();
});

test("the page states the bounds as they are", () => {
  const stated = [...readFileSync(PAGE, "utf8").matchAll(/^\| `(\w+)` \| ([\d,]+) \|/gm)].map(
    ([, name = "", most = ""]) => [name, Number(most.replaceAll(",", ""))],
  );
  expect(stated).toHaveLength(7);
  expect(limits).toMatchObject(Object.fromEntries(stated));
});
