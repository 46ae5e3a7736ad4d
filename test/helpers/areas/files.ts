import { filesArea, FileSearchService, FileService } from "../../../controller/areas/files/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { tagRuntime } from "../objects/tags.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

/** The audit log of a test that reads no entries. */
export const NO_TRAIL = { ready: () => Promise.resolve(), record: () => Promise.resolve() };

export interface FileController extends AsyncDisposable {
  readonly files: FileService;
  readonly search: FileSearchService;
  readonly objects: ObjectService;
  readonly user: (path: string) => { readonly path: string; readonly space: "user" };
  /** Sorted paths below a folder; folders end with a slash. */
  readonly tree: (principal: Principal, path: string) => Promise<readonly string[]>;
}

export interface FileControllerOptions
  extends Pick<ConstructorParameters<typeof FileService>[0], "everyone" | "runNames" | "room" | "history"> {
  readonly own?: string;
  /** Ids of controllers whose lease is over. */
  readonly gone?: ReadonlySet<string>;
  /** Stores for the object database instead of `stores`; they may fail. */
  readonly data?: Stores;
}

/** The services that a controller needs for files, over stores that it may share with others. */
export function fileController(
  stores: Stores,
  { own = "one", gone = new Set(), data = stores, ...more }: FileControllerOptions = {},
): FileController {
  const runtime = tagRuntime();
  const objects = new ObjectService({ visible: visibleObjects, stores: data, runtime });
  const controllers = { own, has: (id: string) => !gone.has(id) };
  const search = new FileSearchService({ stores, objects, runtime, controllers });
  const files = new FileService({ stores, objects, runtime, controllers, keeper: search, ...more });
  for (const definition of filesArea(files, search, NO_TRAIL).classes ?? []) objects.registerSystemClass(definition);
  return {
    files,
    search,
    objects,
    user: (path) => ({ path, space: "user" }),
    tree: (principal, path) => treeOf(files, principal, path),
    async [Symbol.asyncDispose]() {
      await files.close();
      await search.close();
      await objects.close();
    },
  };
}

async function treeOf(files: FileService, principal: Principal, path: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of files.list(principal, { path, space: "user" })) {
    for (const { fullname, content } of page) {
      found.push(content ? fullname : `${fullname}/`);
      if (!content) found.push(...(await treeOf(files, principal, fullname)));
    }
  }
  return found.sort();
}
