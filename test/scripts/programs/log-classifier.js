/* Lines of logs become patterns: numbers, addresses and names in quotes are taken out, and what is left is counted. */
var lines = JSON.parse(decodeURIComponent(INPUT));
var MASKS = [
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, "<address>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  [/"(?:[^"\\]|\\.)*"/g, "<text>"],
  [/\b\d+(?:\.\d+)?(ms|s|%)?(?![\w.])/g, "<number>$1"],
];

function pattern(line) {
  return _.reduce(
    MASKS,
    function (text, mask) {
      return text.replace(mask[0], mask[1]);
    },
    line.replace(/\s+/g, " "),
  );
}

function Counter() {
  this.of = {};
}
Counter.prototype.add = function (name, example) {
  var known = this.of[name];
  if (known) known.count++;
  else this.of[name] = { pattern: name, count: 1, example: example };
};
Counter.prototype.top = function (n) {
  var all = _.values(this.of);
  all.sort(function (one, other) {
    return other.count - one.count || (one.pattern < other.pattern ? -1 : 1);
  });
  return all.slice(0, n);
};

var counter = new Counter();
lines.forEach(function (line) {
  counter.add(pattern(line), line);
});
var top = counter.top(3);
_.each(top, function (entry) {
  odb.mql("INSERT INTO /matrix/patterns/line pattern = ?, count = ?", entry.pattern, entry.count);
});
OUTPUT = _.map(top, function (entry) {
  return entry.count + " " + entry.pattern;
});
