import { ObjectService, type SystemClass } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { tagsArea, TagService } from "../../../controller/areas/tags/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock } from "../time/clock.ts";
import { testRuntime } from "../time/runtime.ts";

export interface TagController extends AsyncDisposable {
  readonly tags: TagService;
  readonly objects: ObjectService;
  readonly query: QueryService;
}

interface TagControllerOptions {
  readonly own?: string;
  /** Ids of controllers whose lease is over. */
  readonly gone?: ReadonlySet<string>;
  /** By which a move waits before it tries again; the real one when absent. */
  readonly clock?: Clock;
  readonly classes?: (objects: ObjectService) => readonly SystemClass[];
}

export function tagRuntime(): Runtime {
  const random = { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
  return { ...testRuntime(realClock), random };
}

/** The services that a controller needs for tags, over stores that it may share with others. */
export function tagController(
  stores: Stores,
  { own = "one", gone = new Set(), clock = realClock, classes = () => [] }: TagControllerOptions = {},
): TagController {
  const runtime = tagRuntime();
  const objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  const query = new QueryService({ objects, runtime });
  const controllers = { own, has: (id: string) => !gone.has(id) };
  const tags = new TagService({ stores, objects, query, runtime: { ...runtime, clock }, controllers });
  for (const definition of [...(tagsArea(tags).classes ?? []), ...classes(objects)])
    objects.registerSystemClass(definition);
  return {
    tags,
    objects,
    query,
    async [Symbol.asyncDispose]() {
      await tags.close();
      await objects.close();
    },
  };
}
