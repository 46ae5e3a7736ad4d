import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import type { SheetReport, SheetRequest } from "../../../controller/areas/transfer/headed/index.ts";
import type { Row } from "../../../common/value.ts";
import { zipOf } from "../runs/archives.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal } from "../time/runtime.ts";
import { TestTransfer } from "./transfer.ts";

const admin = testPrincipal();
export const SERVERS = "/matrix/server";

type Asked = Partial<SheetRequest> & { readonly who?: Principal };

/** Imports of files with a heading line into a class of servers with columns of many types. */
export class OwnSheets implements AsyncDisposable {
  readonly transfer: TestTransfer;
  readonly #engine: TestEngine;

  private constructor(engine: TestEngine) {
    this.#engine = engine;
    this.transfer = new TestTransfer(engine);
  }

  static async open(): Promise<OwnSheets> {
    const sheets = new OwnSheets(await openTestEngine());
    await sheets.transfer.objects.createEdgeType(admin, { name: "runs_on", remedy: "" });
    await sheets.transfer.query.rows(
      admin,
      `create class ${SERVERS} (host varchar 'Name of the host', rack_no int, note text, big bigint, ratio double, seen timestamp, bought date,
         up boolean, ports list<bigint>, marks map<varchar,varchar>, keys(host))`,
    );
    return sheets;
  }

  async take(content: string | Uint8Array, { who = admin, ...request }: Asked = {}): Promise<SheetReport> {
    const path = join(this.#engine.dir, "own.csv");
    await writeFile(path, content);
    return this.transfer.imports.sheet(who, { path, filename: "own.csv" }, { class: SERVERS, ...request });
  }

  found(columns: string): Promise<readonly Row[]> {
    return this.transfer.query.rows(admin, `select ${columns} from ${SERVERS} order by host`);
  }

  async emptied(): Promise<void> {
    await this.transfer.query.rows(admin, `delete from ${SERVERS}`);
  }

  /** The message that refuses a file, of which nothing was written; "written" if the file was not refused. */
  async refusal(content: string | Uint8Array, asked: Asked = {}): Promise<string> {
    await this.emptied();
    const message = await this.take(content, asked).then(
      () => "written",
      (thrown: unknown) => (thrown as Error).message,
    );
    return (await this.found("host")).length === 0 ? message : "written";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.transfer.close();
    await this.#engine[Symbol.asyncDispose]();
  }
}

/** A workbook with sheets of these rows. Its first style shows a date, the second a time, the third a number. */
export function workbook(sheets: Readonly<Record<string, string>>, property = ""): Promise<Buffer> {
  const names = Object.keys(sheets);
  const part = (at: number) => `xl/worksheets/${at}.xml`;
  const of = (text: (name: string, at: number) => string): string => names.map(text).join("");
  return zipOf([
    {
      name: "xl/workbook.xml",
      content: `<workbook><workbookPr${property}/><sheets>${of((name, at) => `<sheet name="${name}" r:id="r${at}"/>`)}</sheets></workbook>`,
    },
    {
      name: "xl/_rels/workbook.xml.rels",
      content: `<Relationships>${of((_, at) => `<Relationship Id="r${at}" Target="/${part(at)}"/>`)}</Relationships>`,
    },
    {
      name: "xl/styles.xml",
      content:
        '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[$-409]d/m/yy\\ h:mm"/><numFmt numFmtId="165" formatCode="0.00&quot; days&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>',
    },
    { name: "xl/sharedStrings.xml", content: "<sst><si><t>host</t></si><si><t>shared</t></si></sst>" },
    ...Object.values(sheets).map((rows, at) => ({
      name: part(at),
      content: `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
    })),
  ]);
}

export function cells(number: number, ...contents: readonly string[]): string {
  const made = contents.map((content, at) => {
    const place = `${String.fromCharCode(65 + at)}${number}`;
    return content.startsWith("<")
      ? content.replace("<c", `<c r="${place}"`)
      : `<c r="${place}" t="str"><v>${content}</v></c>`;
  });
  return `<row r="${number}">${made.join("")}</row>`;
}
