"""Templates of chats that attack whoever renders them, and mutants of templates: each gives text, or a clean error."""

from __future__ import annotations

import random
from random import Random

from fuzzing import Fuzzer
from mutants import is_small

from glow_mlir.generation.template import ChatTemplate

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}

TEMPLATE = """
{%- macro described(tool) %}{{ tool.function.name }}: {{ tool | tojson(indent=2) }}{% endmacro -%}
{%- set ns = namespace(system='', last=-1) -%}
{{- bos_token }}
{%- for message in messages if message.role == 'system' %}{% set ns.system = ns.system ~ message['content'] %}
{%- endfor %}
{%- if tools %}{% for tool in tools %}{{ '\\n' + described(tool) }}{% endfor %}{% endif %}
{%- for message in messages %}
    {%- if loop.first and ns.system %}{{ '<|system|>' + ns.system | trim + eos_token }}{% endif %}
    {%- if message.role in ['user', 'assistant'] and message.content is string %}
        {{- '<|' ~ message.role ~ '|>' }}
        {{- message.content.split('</think>')[-1].lstrip('\\n').replace('a', 'b')[:100] }}{{ eos_token }}
    {%- elif message.role != 'system' %}{{ raise_exception('no ' + message.role) }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}
"""

LOOP = "{% for a in range(99999) %}"
DOUBLED = "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = @ %}{% endfor %}{{ ns.x | length }}"
LONG = "{% set x = 'a b' * 1000000 %}"
TWICE = "{% set ns = namespace(l=('a',)) %}{% for i in range(60) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}"

ATTACKS = {
    "nested loops": LOOP * 4 + "x" + "{% endfor %}" * 4,
    "loops of much code": LOOP * 2 + "{% set b = 1 %}" * 2000 + "{% endfor %}" * 2,
    "loops that drop all": LOOP + "{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
    "a recursive macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a macro that calls itself twice": "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}"
    "{{ m(60) }}",
    "a recursive loop": "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "a recursive loop of ranges": "{% for a in [1, 2] recursive %}{{ loop(range(99999)) }}{% endfor %}",
    "a recursive loop that drops": "{% for a in range(99999) if a < 0 or a == 5 recursive %}" + LOOP
    + "{{ loop(range(99999)) }}{% endfor %}{% endfor %}",
    "~": DOUBLED.replace("@", "ns.x ~ ns.x"),
    "+": DOUBLED.replace("@", "ns.x + ns.x"),
    "* 2": DOUBLED.replace("@", "ns.x * 2"),
    "joined": DOUBLED.replace("@", "[ns.x, ns.x] | join"),
    "the method join": DOUBLED.replace("@", "''.join([ns.x, ns.x])"),
    "written twice": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x }}"
    "{% endset %}{% set ns.x = y %}{% endfor %}",
    "replaced": DOUBLED.replace("@", "ns.x | replace('a', 'aa')"),
    "replaced by long ones": LONG + "{{ x.replace('a', x) }}",
    "a list doubled": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "a number squared": "{% set ns = namespace(x=9) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "a power": "{{ 9 ** (9 ** 9) }}",
    "a number doubled": "{% set ns = namespace(x=9) %}" + LOOP + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "repeated": "{{ 'a' * 10000000000 }}",
    "repeated from the left": "{{ 10000000000 * 'a' }}",
    "a list repeated": "{{ ([0] * 10000000000) | length }}",
    "center": "{{ 'a' | center(10000000000) }}",
    "the method center": "{{ 'a'.center(10000000000) }}",
    "ljust": "{{ 'a'.ljust(10000000000) }}",
    "zfill": "{{ 'a'.zfill(10000000000) }}",
    "expandtabs": "{% set x = '\t' * 4000000 %}{{ x.expandtabs(1000000) }}",
    "indent": "{{ 'a\nb' | indent(10000000000) }}",
    "indent by text": "{% set x = 'a\n' * 1000000 %}{{ x | indent(x) }}",
    "indent of lines": "{% set x = 'a\n' * 1000000 %}{{ x | indent(1000000) }}",
    "the filter format": "{{ '%10000000000d' | format(1) }}",
    "the filter format of a star": "{{ '%*d' | format(1000000000, 1) }}",
    "%": "{{ '%10000000000d' % 1 }}",
    "% of many": LONG + "{% set f = '%(a)s' * 1000000 %}{{ f % {'a': x} }}",
    "the method format": "{{ '{:>10000000000}'.format(1) }}",
    "the method format of a width": "{{ '{:>{}}'.format(1, 1000000000) }}",
    "format_map": "{{ '{a:>10000000000}'.format_map({'a': 1}) }}",
    "translate": LONG + "{{ x.translate({97: x}) }}",
    "bytes of a number": "{{ (1).to_bytes(10000000000, 'big') | length }}",
    "JSON indented": "{{ [1, [2]] | tojson(indent=1000000000) }}",
    "JSON indented by text": LONG + "{{ range(9999) | list | tojson(indent=x) }}",
    "separators of JSON": LONG + "{{ {'a': 1} | tojson(separators=(x, x)) }}" * 50,
    "rounded": "{{ 1.5 | round(100000000, 'ceil') }}",
    "split": "{% set x = 'ab\u2003' * 2700000 %}{{ x.split() | length }}",
    "split by a character": LONG + "{{ x.split('a') | length }}",
    "written often": LONG + LOOP + "{{ x }}{% endfor %}",
    "kept": LONG + "{% set ns = namespace(l=[]) %}" + LOOP + "{% set ns.l = ns.l + [x ~ a] %}{% endfor %}",
    "sliced": LONG + LOOP + "{% set y = x[1:] %}{% endfor %}",
    "looked for": LONG + LOOP * 2 + "{% if 'c' in x %}{% endif %}{% endfor %}{% endfor %}",
    "a test of what is in": LONG + LOOP * 2 + "{% if 'c' is in x %}{% endif %}{% endfor %}{% endfor %}",
    "a test of case": LONG + LOOP * 2 + "{% if x is lower %}{% endif %}{% endfor %}{% endfor %}",
    "lists in lists written": TWICE + "{{ ns.l }}",
    "lists in lists as JSON": TWICE + "{{ ns.l | tojson }}",
    "lists in lists as text": TWICE + "{{ ns.l | string | length }}",
    "lists in lists joined": TWICE + "{{ 'a' ~ ns.l }}",
    "lists in lists compared": TWICE + TWICE.replace("ns", "ms") + "{{ ns.l == ms.l }}",
    "lists in lists as a key": TWICE + "{% set d = {ns.l: 1} %}",
    "lists in lists looked up": TWICE + "{{ {}[ns.l] }}",
    "lists in lists looked up by get": TWICE + "{{ {}.get(ns.l) }}",
    "lists in lists in order": TWICE + "{{ [ns.l, ns.l] | unique | list | length }}",
    "lists in lists formatted": TWICE + "{{ '{}'.format(ns.l) }}",
    "namespaces in namespaces": "{% set a0 = namespace(x=1) %}"
    + "".join(f"{{% set a{n + 1} = namespace(x=a{n}, y=a{n}) %}}" for n in range(60)) + "{{ a60 }}",
    "a namespace in itself": "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
    "lists added": "{{ ([[1]] * 1000000) | sum(start=[]) | length }}",
    "sorted often": "{% set x = range(99999) | list %}" + LOOP + "{% set y = x | sort %}{% endfor %}",
    "text without sense": "{{ lipsum(n=1000000) }}",
    "the time": "{{ strftime_now('%Y' * 1000000) }}",
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "classes by attr": "{{ (''|attr('__class__')).x.y }}",
    "classes by format": "{{ '{0.__class__.__mro__}'.format('')  + 1 }}",
    "globals": "{{ raise_exception.__globals__['x'] }}",
    "a frame": "{{ cycler.__init__.__globals__.os.popen('true').read() }}",
    "code": "{{ self._TemplateReference__context.eval_ctx.x.y }}",
    "a change of messages": "{{ messages.append(1) }}",
    "another template": "{% include 'passwd' %}",
    "an import": "{% import 'os' as os %}",
}  # fmt: skip


def mutant(random_: random.Random, text: str) -> str:
    """A text with a few changes."""
    pieces = [
        "{%",
        "%}",
        "{{",
        "}}",
        "for",
        "in",
        "if",
        "(",
        ")",
        "[",
        "]",
        "|",
        "'",
        "~",
        "macro m()",
        "endfor",
        "9",
        "\0",
    ]
    for _ in range(random_.randint(1, 4)):
        place, size = random_.randrange(len(text)), random_.randint(0, 30)
        source = random_.randrange(len(text))
        part = random_.choice(
            ["", random_.choice(pieces), text[source : source + size], chr(random_.randrange(0x3000))]
        )
        text = text[:place] + part + text[place + random_.choice([0, len(part), size]) :] or " "
    return text


MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello there"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "How are you?"},
]


def text_of(seed: int) -> str:
    """The template of a seed: an attack of four, damaged in most cases."""
    random_ = Random(f"template {seed}")
    text = random_.choice([*ATTACKS.values()]) if random_.randrange(4) == 0 else TEMPLATE
    return mutant(random_, text) if random_.randrange(5) else text


def check(seed: int) -> bool:
    """Whether the template of a seed is rendered; raises where it is neither that nor refused cleanly."""
    text = text_of(seed)
    return is_small(lambda: _render(text))


def _render(text: str) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    ChatTemplate(text, TOKENS).render(MESSAGES, tools=[tool])


STAGES = {"": Fuzzer(check, show=text_of, seconds=60, memory=500 << 20)}
