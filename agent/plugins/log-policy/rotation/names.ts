import { basename, dirname } from "node:path";

/** An ending that is a number, or a day with or without its time. */
const NUMBERED = /^[.-]\d[\d.:T_-]*$/;
/** Endings without a number that a rotation adds to the name of a log. */
const WORDS = /^(?:~|[._-](?:old|bak|backup|copy|last|orig|prev|previous|rotated|save))$/;

/**
 * The names from which a rotation may have made this one: `access.log` for `access.log.1`, `access.log-20260101`,
 * `access.log.old` and `access-20260101.log`. There may be several. Only those of followed files matter.
 */
export function originsOf(path: string): string[] {
  const name = basename(path);
  const folder = path.slice(0, path.length - name.length);
  const dot = name.lastIndexOf(".");
  const origins: string[] = [];
  for (let at = 1; at < name.length; at++) {
    const added = name.slice(at);
    if (NUMBERED.test(added) || WORDS.test(added)) origins.push(folder + name.slice(0, at));
    else if (dot > at && NUMBERED.test(name.slice(at, dot))) origins.push(folder + name.slice(0, at) + name.slice(dot));
  }
  return origins;
}

/** True if the rotation added a number or a day, not a word. */
export function isNumbered(path: string, home: string): boolean {
  const [name, first] = [basename(path), basename(home)];
  let same = 0;
  while (same < first.length && name[same] === first[same]) same++;
  return dirname(path) === dirname(home) && /^[.-]?\d/.test(name.slice(same));
}

/**
 * Compares two names by age, older first. Numbers increase with age, and days decrease. A name with neither is the
 * youngest. Zero if the names do not tell.
 */
export function compareGenerations(a: string, b: string): number {
  const [first, second] = [generationOf(a), generationOf(b)];
  if (first === undefined || second === undefined) return first === second ? 0 : first === undefined ? 1 : -1;
  return first >= FIRST_DAY && second >= FIRST_DAY ? first - second : second - first;
}

/** True if none of the names is a younger generation of the log than `path`. */
export function isYoungest(path: string, home: string, names: readonly string[]): boolean {
  return !names.some(
    (name) => dirname(name) === dirname(home) && isGenerationOf(name, home) && compareGenerations(name, path) > 0,
  );
}

function isGenerationOf(path: string, home: string): boolean {
  return (
    generationOf(path) !== undefined && [path, path.replace(PACKED, "")].some((name) => originsOf(name).includes(home))
  );
}

const PACKED = /\.(?:gz|bz2|xz|zst|zip|lz4|Z)$/;
const FIRST_DAY = 19_700_101;

function generationOf(path: string): number | undefined {
  const digits = /[.-](\d[\d-]*)(?:\.[^.\d]+)?$/.exec(basename(path))?.[1];
  return digits === undefined ? undefined : Number(digits.replaceAll("-", ""));
}
