import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };

const FOLDER = ".reports/soak";

/** Result of one portion of one part. */
export interface Portion {
  readonly part: string;
  readonly count: number;
  readonly seed: number;
  readonly seconds: number;
  /** The error and the end of the output. Absent: it passed. */
  readonly failure?: string;
}

/** Report file of a soak, complete after each portion: parts, seeds, failures, and the versions that were tested. */
export class SoakReport {
  readonly file: string;
  readonly #portions: Portion[] = [];
  readonly #head: Readonly<Record<string, unknown>>;

  constructor(settings: Readonly<Record<string, unknown>>, startedAt: Date) {
    mkdirSync(FOLDER, { recursive: true });
    this.file = join(FOLDER, `${startedAt.toISOString().replaceAll(/[^0-9T]/g, "")}.json`);
    this.#head = { startedAt: startedAt.toISOString(), settings, versions: versions() };
    this.#write();
  }

  get failures(): readonly Portion[] {
    return this.#portions.filter(({ failure }) => failure !== undefined);
  }

  add(portion: Portion): void {
    this.#portions.push(portion);
    this.#write();
  }

  /** A line for each part: amount, portions, seconds, failures. */
  summary(): string {
    const lines = [...new Set(this.#portions.map(({ part }) => part))].map((part) => {
      const own = this.#portions.filter((one) => one.part === part);
      const sum = (number: (one: Portion) => number): number => own.reduce((all, one) => all + number(one), 0);
      const failed = own.filter(({ failure }) => failure !== undefined).length;
      return `${failed > 0 ? "FAIL" : "ok  "} ${part}: ${sum(({ count }) => count)} in ${own.length} portions, ${sum(({ seconds }) => seconds)} s, ${failed} failed`;
    });
    return lines.join("\n");
  }

  #write(): void {
    const failed = this.failures.length;
    const report = { ...this.#head, failed, portions: this.#portions };
    writeFileSync(this.file, `${JSON.stringify(report, undefined, 2)}\n`);
  }
}

function versions(): Readonly<Record<string, string>> {
  const commit = execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
  return { odp: packageJson.version, commit, node: process.version, os: `${process.platform} ${process.arch}` };
}
