import { lazyPages } from "../../../common/pages.ts";
import type { Clock } from "../../../common/time.ts";
import { AppError } from "../../../common/errors.ts";
import { CREATED_ONLY } from "./values/celllayout.ts";
import { type Principal, seesAll } from "../permissions/index.ts";
import { classNotFound, type LoadedClass } from "./definitions/views.ts";
import { planAsOfRead, explainAsOf, readAsOf } from "./history/asof.ts";
import { edgesAsOf } from "./history/edgesasof.ts";
import { keepsVersions, lastMicrosecond, lastStates, versionsOf, withoutVersions } from "./history/history.ts";
import { pastStates, type PastStatesRange } from "./history/paststates.ts";
import { removedAmong, removedPlaces } from "./history/removed.ts";
import type { OpenTenants, Reading } from "./opening.ts";
import { planCount, tallies } from "./reading/counting.ts";
import { edgesOf } from "./reading/edges.ts";
import { estimatedReads } from "./reading/estimating.ts";
import { planInOrder, readInOrder, worthInOrder } from "./reading/inorder.ts";
import { inPages, placesOf } from "./reading/locate.ts";
import { planRead, scopeOf, type ReadPlan } from "./reading/readplan.ts";
import { looksUpWords, withoutWords, withWords, type WordSource, wordSteps } from "./reading/wordpatterns.ts";
import type {
  CountRequest,
  EdgeRequest,
  HistoryRange,
  ObjectEdge,
  ObjectRef,
  ObjectRow,
  ObjectTimes,
  ObjectVersion,
  OrderedRead,
  OrderedRequest,
  PastState,
  ReadExplanation,
  ReadOrder,
  ReadRequest,
  Tally,
} from "./types.ts";
import type { ObjectHistories, ObjectReads } from "./unrestricted.ts";
import { createdMs } from "./values/entity.ts";
import { wholeId } from "./values/identity.ts";

/** The text must not depend on the stored objects: the choice is made from rows that the caller may not see. */
function orderStep({ column, descending }: ReadOrder): string {
  return `or in the order of the index ${column}${descending ? " desc" : ""} until enough are found, where that reads less`;
}

function wordSource(request: ReadRequest, { tenant, snapshot, readable }: Reading): WordSource {
  return { store: tenant.store.objects, views: () => scopeOf(snapshot, request).filter(readable) };
}

/** Reads of objects as they are and as they were, of their edges, and counts. */
export class Reads implements ObjectReads, Pick<ObjectHistories, "times" | "pastStates"> {
  readonly #tenants: OpenTenants;
  readonly #clock: Clock;

  constructor(tenants: OpenTenants, clock: Clock) {
    this.#tenants = tenants;
    this.#clock = clock;
  }

  async get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    return tenant.reader.get(refs.map((ref) => placesOf(snapshot, ref, readable)));
  }

  read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]> {
    return lazyPages(() => {
      const reading = this.#tenants.readingNow(principal);
      return reading && !looksUpWords(request)
        ? this.#pages(principal, request, { reading, known: request })
        : this.#pagesLater(principal, request);
    });
  }

  async #pagesLater(principal: Principal, request: ReadRequest): Promise<AsyncIterable<readonly ObjectRow[]>> {
    const reading = await this.#tenants.reading(principal);
    const known = request.asOfMs === undefined ? await withWords(request, wordSource(request, reading)) : request;
    return this.#pages(principal, request, { reading, known });
  }

  /** `known`: the request with the words of its patterns. */
  #pages(
    principal: Principal,
    request: ReadRequest,
    { reading, known }: { readonly reading: Reading; readonly known: ReadRequest },
  ): AsyncIterable<readonly ObjectRow[]> {
    const { tenant, snapshot, readable } = reading;
    const { asOfMs } = request;
    if (asOfMs === undefined)
      return tenant.reader.read({ snapshot, principal, request }, planRead(snapshot, known, readable));
    const past = { ...request, asOfMs };
    const nowMs = this.#clock.nowMs();
    const source = { store: tenant.store.objects, reader: tenant.reader, snapshot, principal, nowMs };
    return readAsOf(past, planAsOfRead(snapshot, past, { readable, nowMs }), source);
  }

  async inOrder(principal: Principal, request: OrderedRequest): Promise<OrderedRead | undefined> {
    const reading = await this.#tenants.reading(principal);
    const plan = request.asOfMs === undefined ? planInOrder(request, reading) : undefined;
    if (plan === undefined) return undefined;
    const store = reading.tenant.store.objects;
    const whole = await this.#plan(request, reading);
    const most = await worthInOrder(plan, { whole, rows: request.expected }, store);
    return most === undefined ? undefined : readInOrder(plan, { request, most }, { store, snapshot: reading.snapshot });
  }

  async explain(principal: Principal, request: ReadRequest): Promise<ReadExplanation> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const { asOfMs } = request;
    if (asOfMs === undefined) {
      const isOpen = seesAll(principal, snapshot.tree("/"));
      const { explanation } = isOpen
        ? await this.#plan(request, { tenant, snapshot, readable })
        : planRead(snapshot, withoutWords(request), readable);
      const { steps, used } = explanation();
      const { order } = request;
      const orders = order && planInOrder({ ...request, order }, { snapshot, readable }) ? [orderStep(order)] : [];
      return { used, steps: [...steps, ...orders, ...(isOpen ? wordSteps(used) : [])] };
    }
    const past = { ...request, asOfMs };
    return explainAsOf(planAsOfRead(snapshot, past, { readable, nowMs: this.#clock.nowMs() }), past);
  }

  async estimate(principal: Principal, request: ReadRequest): Promise<number | undefined> {
    if (request.asOfMs !== undefined) return undefined;
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    return estimatedReads(await this.#plan(request, { tenant, snapshot, readable }), tenant.store.objects);
  }

  async #plan(request: ReadRequest, reading: Reading): Promise<ReadPlan> {
    const known = await withWords(request, wordSource(request, reading));
    return planRead(reading.snapshot, known, reading.readable);
  }

  async count(principal: Principal, request: CountRequest): Promise<AsyncIterable<readonly Tally[]> | undefined> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const counts = planCount(planRead(snapshot, request, readable), request);
    return counts && tallies(tenant.store.objects, counts, request.signal);
  }

  async *edges(
    principal: Principal,
    refs: readonly ObjectRef[],
    request: EdgeRequest,
  ): AsyncGenerator<readonly ObjectEdge[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const places = refs.flatMap((ref) => placesOf(snapshot, ref, readable));
    const source = { store: tenant.store.objects, reader: tenant.reader, snapshot, readable, principal };
    const { asOfMs } = request;
    const nowMs = this.#clock.nowMs();
    yield* asOfMs === undefined
      ? edgesOf(places, request, source)
      : edgesAsOf(places, { ...request, asOfMs }, { ...source, nowMs });
  }

  async *history(
    principal: Principal,
    ref: ObjectRef,
    range: HistoryRange = {},
  ): AsyncGenerator<readonly ObjectVersion[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    yield* versionsOf(placesOf(snapshot, ref, readable), range, { store: tenant.store.objects });
  }

  async times(
    principal: Principal,
    path: string,
    ids: readonly string[],
  ): Promise<readonly (ObjectTimes | undefined)[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const places = ids.map((id) => placesOf(snapshot, { id, class: path }, readable)[0]);
    const found = await inPages(
      places.flatMap((place) => place?.key ?? []),
      (keys) => tenant.store.objects.get(keys, CREATED_ONLY),
    );
    const entities = found[Symbol.iterator]();
    return places.map((place) => {
      const entity = place && entities.next().value;
      return entity && { writeUs: entity.lastUs, createdMs: createdMs(entity) };
    });
  }

  async *pastStates(
    principal: Principal,
    ref: Required<ObjectRef>,
    range: PastStatesRange = {},
  ): AsyncGenerator<readonly PastState[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const isSeen = (view: LoadedClass): boolean => readable(view) && seesAll(principal, [view]);
    const [place] = placesOf(snapshot, ref, readable);
    if (place === undefined) throw classNotFound(ref.class);
    if (!isSeen(place.view))
      throw new AppError("denied", `${principal.user} sees only a part of ${ref.class}, and so not its history.`, {
        details: { class: ref.class },
      });
    if (keepsVersions(place.view)) yield* pastStates(place, range, { store: tenant.store.objects, snapshot, isSeen });
  }

  async *removed(
    principal: Principal,
    path: string,
    { fromMs, signal }: Pick<HistoryRange, "fromMs" | "signal"> = {},
  ): AsyncGenerator<readonly ObjectRef[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const view = snapshot.get(path);
    if (view === undefined || !readable(view)) throw classNotFound(path);
    if (!keepsVersions(view)) throw withoutVersions(view);
    const afterUs = fromMs === undefined ? -Infinity : lastMicrosecond(fromMs - 1);
    const source = { store: tenant.store.objects, reader: tenant.reader };
    for await (const places of removedPlaces(view, { afterUs, signal }, source))
      yield places.map(({ key }) => ({ id: wholeId(view, key.id), class: path }));
  }

  async *removedObjects(
    principal: Principal,
    path: string,
    { ids, signal }: { readonly ids?: readonly string[]; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<readonly ObjectRow[]> {
    const { tenant, snapshot, readable } = await this.#tenants.reading(principal);
    const view = snapshot.get(path);
    if (view === undefined || !readable(view)) throw classNotFound(path);
    const source = { store: tenant.store.objects, reader: tenant.reader };
    const pages =
      ids === undefined ? removedPlaces(view, { afterUs: -Infinity, signal }, source) : removedAmong(view, ids, source);
    for await (const places of pages) yield await lastStates(places, source);
  }
}
