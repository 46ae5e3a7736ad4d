import { cpus } from "node:os";

/**
 * Result of a bench: our figure beside the limit, which is the same work done bare. Both take turns in one run, so a
 * machine that gets slower slows both. Quote the ratio.
 */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  /** The same work done bare, or the limit that the figure must keep. */
  readonly against: number;
  readonly againstName: string;
  /** `ratio`: ours / against must be at least the goal. `most`: ours must be at most `against`. */
  readonly kind: "ratio" | "most";
  /** 0: no goal, the figure is only printed. */
  readonly goal: number;
}

export interface Bench {
  readonly name: string;
  /** `tell` is for benches that take long. It prints a figure at once, so that it is shown even if the rest fails. */
  run(tell: (figure: Figure) => void): Promise<readonly Figure[]>;
}

const ROUNDS = 5;

/** Medians of rounds in turns, after one round that is not counted. */
export async function inTurns(
  ours: () => Promise<number>,
  bare: () => Promise<number>,
  rounds = ROUNDS,
): Promise<{ readonly ours: number; readonly against: number }> {
  await bare();
  await ours();
  const pairs: { ours: number; bare: number }[] = [];
  for (let round = 0; round < rounds; round += 1) pairs.push({ bare: await bare(), ours: await ours() });
  const ratio = median(pairs.map((pair) => pair.ours / pair.bare));
  const against = median(pairs.map((pair) => pair.bare));
  return { ours: ratio * against, against };
}

/** Operations per second of `count` operations with `atOnce` under way. */
export async function perSecond(
  count: number,
  atOnce: number,
  operation: (index: number) => Promise<unknown>,
): Promise<number> {
  const started = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await operation(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return (count * 1_000) / (performance.now() - started);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The quantile `part` (0 to 1) of the values. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

export function reached(figure: Figure): boolean {
  return figure.kind === "ratio" ? figure.ours / figure.against >= figure.goal : figure.ours <= figure.against;
}

export function machine(): string {
  return `${cpus().length} cores (${cpus()[0]?.model ?? "unknown"}), Node ${process.version}, ${process.platform} ${process.arch}`;
}

export function line(figure: Figure): string {
  const { name, unit, ours, against, againstName } = figure;
  const verdict = reached(figure) ? "reached" : "MISSED";
  if (figure.kind === "most") return `${name}: ${short(ours)} ${unit}, at most ${short(against)} ${unit} — ${verdict}`;
  const ratio = `${Math.round((100 * ours) / against)} % of ${againstName}`;
  const told = figure.goal === 0 ? "" : ` (goal ${Math.round(100 * figure.goal)} %) — ${verdict}`;
  return `${name}: ${short(ours)} ${unit} beside ${short(against)} ${unit} = ${ratio}${told}`;
}

export function short(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}
