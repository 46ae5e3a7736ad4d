import { isInside, relativePath } from "../../../common/paths.ts";
import type { FileName, RunNames } from "../files/index.ts";
import { STARTUP_SCRIPTS } from "./startup.ts";

/** Scripts lie below this folder of the file space. */
const FOLDER = "/script";
/** The name space that platform scripts are called by, whatever the tenant's own is. */
const PLATFORM = "/matrix/";

/** Paths below `/script` at which a script may lie, in the order in which they are tried. */
export function candidates(path: string, ospace: string): readonly string[] {
  const wanted = normalized(path);
  return wanted.startsWith(PLATFORM) && ospace !== PLATFORM.slice(0, -1)
    ? [wanted, `${ospace}/${wanted.slice(PLATFORM.length)}`]
    : [wanted];
}

/** Of the file space. */
export function filePath(path: string): string {
  return `${FOLDER}${path}`;
}

/** The script at a path of the file space. */
export function scriptPath(fullname: string): string {
  return fullname.slice(FOLDER.length);
}

/** The text that the program has for that path, which must be below the ospace. */
export function startUpScript(path: string, ospace: string): string | undefined {
  return isInside(ospace, path) ? STARTUP_SCRIPTS.get(path.slice(ospace.length)) : undefined;
}

/**
 * In which spaces a script is looked for: the users' first, as everything that is run; the system's first, as what a
 * script of that space requires; or in the system's alone, when it was named.
 */
export type SpaceOrder = "users first" | "system first" | "system";

/** Files in which the script of the first of these paths that exists may be, in the order in which they are tried. */
export function fileNames(paths: readonly string[], ospace: string, order: SpaceOrder): readonly FileName[] {
  const inSpace = (space: FileName["space"]) => (path: string) => ({ path: filePath(path), space });
  const system = paths.map(inSpace("system"));
  if (order === "system") return system;
  // Every user runs them at the start: no file of the users' space may come before one of the system's.
  const isStartUp = paths.some((path) => startUpScript(path, ospace) !== undefined);
  if (order === "system first" || isStartUp) return [...system, ...paths.map(inSpace("user"))];
  return paths.flatMap((path) => [inSpace("user")(path), inSpace("system")(path)]);
}

/** Names by which scripts run besides their paths: that of the platform's name space, and in `require` without `.js`. */
export const SCRIPT_NAMES: RunNames = {
  alsoHidden: (ospace, fullname) => {
    if (!isInside(FOLDER, fullname)) return [];
    const platform = filePath(PLATFORM.slice(0, -1));
    const own = isInside(platform, fullname) ? [filePath(ospace) + fullname.slice(platform.length)] : [];
    const all = [fullname, ...own];
    const bare = all.filter((path) => path.endsWith(".js")).map((path) => path.slice(0, -".js".length));
    return [...own, ...bare].filter((path) => path !== fullname);
  },
  builtIn: (ospace) => Array.from(STARTUP_SCRIPTS.keys(), (path) => filePath(ospace + path)),
};

/** A path that does not begin with / is meant from the file that names it; `.js` may be left out. */
export function requiredPaths(path: string, from: string): readonly string[] {
  const whole = path.startsWith("/") ? path : `${from.slice(0, from.lastIndexOf("/"))}/${path}`;
  const steps: string[] = [];
  for (const step of whole.split("/")) {
    if (step === "..") steps.pop();
    else if (step !== "." && step !== "") steps.push(step);
  }
  const found = `/${steps.join("/")}`;
  return found.endsWith(".js") ? [found] : [`${found}.js`, found];
}

/** A body is a path when it is one line that looks like one, or is said to be one. */
export function isPath(text: string): boolean {
  return /^\s*\/[^\s;(){}=*'"`]+\.js\s*$/.test(text);
}

function normalized(path: string): string {
  const below = `/${relativePath(path.trim().replace(/^\/+/, ""))}`;
  return below.startsWith(`${FOLDER}/`) ? below.slice(FOLDER.length) : below;
}
