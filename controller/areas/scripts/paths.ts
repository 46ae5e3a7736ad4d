import { relativePath } from "../../../common/paths.ts";

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
