import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorText } from "../../../common/errors.ts";

const run = promisify(execFile);
const PACKAGE = "@duckdb/node-api@1.5.6-r.1";
const DEADLINE_MS = 300_000;

export interface DuckDbWork {
  /** Folder for the package and its program. */
  readonly folder: string;
  /** File with the columns `vtime, level, host, took`, without a header. */
  readonly csv: string;
  readonly queries: readonly string[];
  readonly rounds: number;
}

/**
 * Milliseconds of each query in DuckDB, the median of all rounds, by one thread over a table in memory. If DuckDB
 * cannot be installed, prints the reason and returns `undefined`.
 */
export async function duckDbMs({ folder, csv, queries, rounds }: DuckDbWork): Promise<readonly number[] | undefined> {
  try {
    const place = join(folder, "duckdb");
    await mkdir(place);
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", place];
    await run("npm", ["install", ...options, PACKAGE], { timeout: DEADLINE_MS });
    const program = join(place, "main.mjs");
    await writeFile(program, PROGRAM);
    const work = JSON.stringify({ csv, queries, rounds });
    const { stdout } = await run(process.execPath, [program, work], { timeout: DEADLINE_MS });
    return JSON.parse(stdout) as readonly number[];
  } catch (error) {
    console.log(`  DuckDB is not measured: ${errorText(error)}`);
    return undefined;
  }
}

const PROGRAM = `import { DuckDBInstance } from "@duckdb/node-api";
const { csv, queries, rounds } = JSON.parse(process.argv[2]);
const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
const connection = await instance.connect();
const columns = "{'vtime': 'BIGINT', 'level': 'VARCHAR', 'host': 'VARCHAR', 'took': 'BIGINT'}";
await connection.run("create table log as select * from read_csv('" + csv + "', header = false, columns = " + columns + ")");
const medians = [];
for (const query of queries) {
  const times = [];
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now();
    const found = await connection.runAndReadAll(query);
    found.getRows();
    times.push(performance.now() - began);
  }
  medians.push(times.sort((a, b) => a - b)[Math.floor(rounds / 2)]);
}
console.log(JSON.stringify(medians));
`;
