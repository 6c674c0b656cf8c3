"""What pyproject.toml cannot say: a wheel has the rule book, docs/rules, within the package that reads it."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithRules(build_py):
    """Builds the packages, and beside them the text of the rules."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # the package is used where it lies, and finds docs/rules
        text = Path(self.build_lib, "fencepost_conformance", "rulebook", "text")
        self.mkpath(str(text))
        for rules in sorted(Path(__file__).parent.glob("docs/rules/*.md")):
            self.copy_file(str(rules), str(text / rules.name))


setup(cmdclass={"build_py": WithRules})
