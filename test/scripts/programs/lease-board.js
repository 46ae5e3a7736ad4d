/* A board of leases on shared test machines: given in turn, renewed by their holder, freed by hand or when over. */
var steps = JSON.parse(decodeURIComponent(INPUT));
var BOARD = "leases";
var answers = [];

function held(machine) {
  return _.first(appcontext.getall(BOARD, "machine = '" + machine + "'"));
}

function take(step) {
  var lease = held(step.machine);
  if (!lease) {
    appcontext.create(BOARD, { machine: step.machine, by: step.by, until: step.at + step.minutes, renewed: 0 }, 600);
    return "given";
  }
  if (lease.until <= step.at) {
    appcontext.delete(BOARD, lease.id);
    return take(step);
  }
  if (lease.by !== step.by) return "held by " + lease.by + " until " + lease.until;
  lease.until = step.at + step.minutes;
  lease.renewed += 1;
  appcontext.update(BOARD, lease.id, _.omit(lease, "id"), 600);
  return "renewed";
}

function free(step) {
  var lease = held(step.machine);
  if (!lease || lease.by !== step.by) return "not yours";
  appcontext.delete(BOARD, lease.id);
  return "freed";
}

var ACTIONS = { take: take, free: free };
_.each(steps, function (step) {
  answers.push(ACTIONS[step.action](step));
});
var open = _.map(appcontext.getall(BOARD, "until > 20 && by != 'bob'"), function (lease) {
  return [lease.machine, lease.by, lease.until, lease.renewed].join(" ");
});
appcontext.deleteall(BOARD);
OUTPUT = { answers: answers, open: open.sort() };
